package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// attemptPatience is how long a caller waits for one server.
const attemptPatience = 2 * time.Second

// attempt makes one request to one server: it sets the status with a number, or
// asks for it if the number is 0. Errors have the kinds that the lookup library
// knows what to do about.
func (l *load) attempt(ctx context.Context, addr string, u *user, number uint64) (statusDocument, error) {
	method, body := http.MethodGet, []byte(nil)
	if number != 0 {
		method = http.MethodPut
		var err error
		if body, err = json.Marshal(statusDocument{User: u.name(), Status: u.text(number, l.valueSize), Number: number}); err != nil {
			return statusDocument{}, err
		}
	}
	var answer statusDocument
	text, err := l.exchange(ctx, method, addr, "/presence/"+u.name(), body, maxBodySize)
	if err == nil {
		if err = json.Unmarshal(text, &answer); err != nil { // it died while it answered
			err = &leasehold.Error{Op: "ask", Kind: leasehold.Unavailable, Subject: addr, Err: err}
		}
	}
	return answer, err
}

// askMany asks one server many questions, maxQuestions at most. It answers all
// of them, or none.
func (l *load) askMany(ctx context.Context, addr string, all []question) ([]reply, error) {
	body, err := l.exchange(ctx, http.MethodPost, addr, "/presence", encodeQuestions(all), int64(replySize*len(all)))
	if err != nil {
		return nil, err
	}
	return decodeReplies(body, len(all))
}

// exchange sends a request to a server and returns what it answers, most bytes
// at most.
func (l *load) exchange(ctx context.Context, method, addr, path string, body []byte, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	unreached := func(err error) error {
		return &leasehold.Error{Op: "ask", Kind: leasehold.Unavailable, Subject: addr, Err: err}
	}
	response, err := l.client.Do(request)
	if err != nil {
		return nil, unreached(err)
	}
	defer response.Body.Close() //nolint:errcheck // all of it has been read, or is not wanted
	text, err := io.ReadAll(io.LimitReader(response.Body, max(most, maxBodySize)))
	if err != nil {
		return nil, unreached(err)
	}
	return text, failure(addr, response, text)
}

// failure is what a response says that is no success.
func failure(addr string, response *http.Response, text []byte) error {
	if response.StatusCode == http.StatusOK {
		return nil
	}
	var d statusDocument
	_ = json.Unmarshal(text, &d) // if it is none, the code says enough
	if response.StatusCode == http.StatusMisdirectedRequest {
		return leasehold.Errorf("ask", leasehold.NotOwner, addr, "%s", d.Error)
	}
	if response.StatusCode == http.StatusServiceUnavailable {
		return leasehold.Errorf("ask", leasehold.Suspended, addr, "%s", d.Error)
	}
	return leasehold.Errorf("ask", leasehold.Internal, addr, "%s: %s", response.Status, d.Error)
}
