package kit

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Failure is a question that could not be answered.
type Failure struct {
	Date string `json:"date"`
	Why  string `json:"why"`
}

// mostWhy bounds how much of an error is told on the page.
const mostWhy = 600

// StoreFailure says on the page that a question could not be answered, and why. What
// it found before stays there, and so does what others found. Of a question that
// has never found anything, only its name, number and title are known.
func StoreFailure(docs string, question Result, why error) error {
	text, err := os.ReadFile(filepath.Join(docs, resultsDir, question.Question+".json"))
	if err == nil {
		err = json.Unmarshal(text, &question)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	words := strings.Join(strings.Fields(why.Error()), " ")
	if len(words) > mostWhy {
		words = strings.ToValidUTF8(words[:mostWhy], "") + " ..."
	}
	question.Failed = &Failure{time.Now().UTC().Format(time.DateOnly), words}
	if err := question.Store(docs); err != nil {
		return err
	}
	return WritePage(docs)
}
