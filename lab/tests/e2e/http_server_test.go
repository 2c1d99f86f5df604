//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// httpServerVariable is set in the environment of an HTTP server process: a copy of
// this test binary that keeps a note for each user, at /users/{name}, and echoes what
// comes over a WebSocket, at /users/{name}/echo.
const httpServerVariable = "LEASEHOLD_E2E_HTTP_SERVER"

// An httpServerOrder is what httpServerVariable says.
type httpServerOrder struct {
	Namespace leasehold.Namespace
	Managers  []string
	Name      leasehold.OwnerID
	Addr      string
}

// userKey is where the key of a request is.
var userKey = leasehttp.PathSegment(2)

// servedBy is a header with the name of the server.
const servedBy = "X-Served-By"

// beHTTPServer is the main function of an HTTP server process.
func beHTTPServer(text string) int {
	if err := serveUsers(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

func serveUsers(text string) error {
	var order httpServerOrder
	if err := json.Unmarshal([]byte(text), &order); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", order.Addr) // first: keys are for servers that can serve
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	notes, err := leasemap.Join(ctx, owner.Config{
		Namespace: order.Namespace, Managers: order.Managers, Name: order.Name, Addr: order.Addr,
	}, leasemap.Config[string]{})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{name}/echo", echoLine)
	mux.HandleFunc("/users/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(servedBy, string(order.Name))
		note, err := keepNote(r, notes)
		if leasehttp.WriteError(w, err) {
			return
		}
		_, _ = io.WriteString(w, note) // a caller that has gone needs no answer
	})
	server := &http.Server{Handler: leasehttp.Middleware(notes.Owner(), userKey)(mux), ReadHeaderTimeout: patience}
	return server.Serve(listener)
}

func keepNote(r *http.Request, notes *leasemap.Map[string]) (string, error) {
	name := r.PathValue("name")
	if r.Method == http.MethodGet {
		note, _, err := notes.Get(name)
		return note, err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return "", err
	}
	_, err = notes.Set(r.Context(), name, string(body))
	return string(body), err
}

func echoLine(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow() //nolint:errcheck // it is closed
	for {
		kind, text, err := conn.Read(r.Context())
		if err != nil || conn.Write(r.Context(), kind, text) != nil {
			return
		}
	}
}

// startHTTPServer starts an HTTP server process, which joins as soon as it can.
func (g *group) startHTTPServer(t *testing.T, ns, name string) *process {
	t.Helper()
	order, err := json.Marshal(httpServerOrder{leasehold.Namespace(ns), g.addrs(), leasehold.OwnerID(name), freeAddr(t)})
	if err != nil {
		t.Fatal(err)
	}
	return launch{
		program: os.Args[0], env: []string{httpServerVariable + "=" + string(order)},
		log: filepath.Join(t.TempDir(), name+".log"),
	}.start(t)
}

// askHTTP asks over HTTP, and returns the answer with its body read.
func askHTTP(t *testing.T, method, url, body string) (status int, by, text string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return 0, "", "", err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	content, err := io.ReadAll(answer.Body)
	return answer.StatusCode, answer.Header.Get(servedBy), string(content), err
}
