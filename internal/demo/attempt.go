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
func (l *load) attempt(ctx context.Context, addr, user string, number uint64) (statusDocument, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptPatience)
	defer cancel()
	method, body := http.MethodGet, []byte(nil)
	if number != 0 {
		method = http.MethodPut
		var err error
		if body, err = json.Marshal(statusDocument{User: user, Status: "here", Number: number}); err != nil {
			return statusDocument{}, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+addr+"/presence/"+user, bytes.NewReader(body))
	if err != nil {
		return statusDocument{}, err
	}
	response, err := l.client.Do(request)
	if err != nil {
		return statusDocument{}, &leasehold.Error{Op: "ask", Kind: leasehold.Unavailable, Subject: addr, Err: err}
	}
	defer response.Body.Close() //nolint:errcheck // all of it has been read, or is not wanted
	return read(addr, response)
}

func read(addr string, response *http.Response) (statusDocument, error) {
	var answer statusDocument
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBodySize))
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	switch {
	case response.StatusCode == http.StatusMisdirectedRequest:
		return answer, leasehold.Errorf("ask", leasehold.NotOwner, addr, "%s", answer.Error)
	case err != nil: // it died while it answered
		return answer, &leasehold.Error{Op: "ask", Kind: leasehold.Unavailable, Subject: addr, Err: err}
	case response.StatusCode != http.StatusOK:
		return answer, leasehold.Errorf("ask", leasehold.Internal, addr, "%s: %s", response.Status, answer.Error)
	}
	return answer, nil
}
