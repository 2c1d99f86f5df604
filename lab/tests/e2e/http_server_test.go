//go:build unix

package e2e

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/pgmap"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// httpServerVariable makes a copy of this test binary an HTTP server that stores a note
// for each user, at /users/{name}, and echoes WebSocket messages, at /users/{name}/echo.
const httpServerVariable = "LEASEHOLD_E2E_HTTP_SERVER"

// An httpServerConfig is the value of httpServerVariable.
type httpServerConfig struct {
	Namespace leasehold.Namespace
	Managers  []string
	Name      leasehold.OwnerID
	Addr      string
	Database  string // of the notes; only in memory without it
}

// userKey extracts the key of a request.
var userKey = leasehttp.PathSegment(2)

// servedBy is the header with the server's name.
const servedBy = "X-Served-By"

// runHTTPServer is the main function of an HTTP server process.
func runHTTPServer(text string) int {
	if err := serveUsers(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

func serveUsers(text string) error {
	var config httpServerConfig
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", config.Addr) // before joining: an owner must be able to serve
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), eventTimeout)
	defer cancel()
	kept, err := config.notes(ctx)
	if err != nil {
		return err
	}
	notes, err := leasemap.Join(ctx, owner.Config{
		Namespace: config.Namespace, Managers: config.Managers, Name: config.Name, Addr: config.Addr,
	}, kept)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{name}/echo", echoLine)
	mux.HandleFunc("/users/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(servedBy, string(config.Name))
		note, err := keepNote(r, notes)
		if leasehttp.WriteError(w, err) {
			return
		}
		_, _ = io.WriteString(w, note) // fails if the caller has closed the connection
	})
	server := &http.Server{Handler: leasehttp.Middleware(notes.Owner(), userKey)(mux), ReadHeaderTimeout: eventTimeout}
	return server.Serve(listener)
}

// notes returns the configuration of the map.
func (c httpServerConfig) notes(ctx context.Context) (leasemap.Config[string], error) {
	if c.Database == "" {
		return leasemap.Config[string]{}, nil
	}
	db, err := sql.Open("pgx", c.Database)
	if err != nil {
		return leasemap.Config[string]{}, err
	}
	table := pgmap.Open(db, "notes")
	return leasemap.Config[string]{Store: table, StoreTimeout: time.Second}, table.Create(ctx)
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
	defer conn.CloseNow() //nolint:errcheck // already closed
	for {
		kind, text, err := conn.Read(r.Context())
		if err != nil || conn.Write(r.Context(), kind, text) != nil {
			return
		}
	}
}

// startHTTPServer starts an HTTP server process, which joins the namespace.
func (g *group) startHTTPServer(t *testing.T, ns, name string) *process {
	t.Helper()
	return startHTTP(t, httpServerConfig{Namespace: leasehold.Namespace(ns), Managers: g.addrs(), Name: leasehold.OwnerID(name), Addr: freeAddr(t)})
}

func startHTTP(t *testing.T, c httpServerConfig) *process {
	t.Helper()
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return launch{
		program: os.Args[0], env: []string{httpServerVariable + "=" + string(config)},
		log: filepath.Join(t.TempDir(), string(c.Name)+".log"),
	}.start(t)
}

// askHTTP sends a request, and returns the status, the server's name and the body.
func askHTTP(t *testing.T, method, url, body string) (status int, by, text string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		return 0, "", "", err
	}
	defer response.Body.Close() //nolint:errcheck // the body was read
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header.Get(servedBy), string(content), err
}
