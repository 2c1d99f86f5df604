package actor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
	"github.com/leasehold-dev/leasehold/server/proc"
)

const callPatience = time.Second

// work reads and writes registers until the context ends, one at a time.
func (c *caller) work(ctx context.Context, client int) error {
	names := history.Watched(c.cfg.Registers)
	transport := &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: callPatience}
	defer transport.CloseIdleConnections()
	via := &http.Client{Transport: transport}
	for i := 0; ; i++ {
		if !proc.Pause(ctx, time.Duration(rand.Int64N(int64(2*c.cfg.Every)))) {
			return nil
		}
		call := history.Call{Began: oracle.Now(), Client: client, Name: names[rand.IntN(len(names))]}
		if rand.IntN(2) == 0 {
			call.Write, call.Value = true, fmt.Sprintf("%d.%d.%d", client, call.Began, i) // unique, also after a restart
			// A write without an answer may be executed, also if this process dies before the answer.
			if err := c.out.Write(history.Event{At: call.Began, Call: &call}); err != nil {
				return err
			}
		}
		if !c.send(ctx, via, &call) {
			continue
		}
		if err := c.out.Write(history.Event{At: oracle.Now(), Call: &call}); err != nil {
			return err
		}
	}
}

// send makes a request, and reports whether it was answered.
func (c *caller) send(ctx context.Context, via *http.Client, call *history.Call) bool {
	addr, ok := c.lookup.Find(leasehold.KeyOf(call.Name))
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	method := http.MethodGet
	if call.Write {
		method = http.MethodPut
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+addr+"/"+call.Name, strings.NewReader(call.Value))
	if err != nil {
		return false
	}
	response, err := via.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close() //nolint:errcheck // only read
	var a answer
	if response.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(response.Body, 2*maxValue)).Decode(&a) != nil {
		return false
	}
	if !call.Write {
		call.Value = a.Value
	}
	call.Generation = a.Generation
	return true
}
