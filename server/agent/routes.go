package agent

import "net/http"

// A Route is an operation of the API. docs/reference/agent.openapi.json is generated from all of them.
type Route struct {
	Method, Path, Summary string
	Query                 []Parameter
	Status                int // of success

	// Request and Answer have the types of the bodies; nil without one. Lines are the types of the lines of a stream.
	Request, Answer any
	Lines           []any

	serve func(*Agent, http.ResponseWriter, *http.Request)
}

// A Parameter is an optional parameter in the query of a URL.
type Parameter struct{ Name, Meaning string }

// Routes returns all operations. An agent serves no others.
func Routes() []Route {
	key := []Parameter{{"key", "the key: 16 hexadecimal digits"}, {"name", "the name that is hashed to the key, instead of key"}}
	ok := http.StatusOK
	return []Route{
		{Method: "GET", Path: "/healthz", Summary: "Report that the agent runs", Status: ok, Answer: struct{}{}, serve: answer((*Agent).health)},
		{Method: "GET", Path: "/metrics", Summary: "Metrics in the text format of Prometheus", Status: ok, serve: (*Agent).metrics},
		{Method: "GET", Path: "/v1/status", Summary: "Joined programs and followed lease tables", Status: ok, Answer: statusDocument{}, serve: answer((*Agent).status)},
		{Method: "POST", Path: "/v1/owners", Summary: "Join a namespace", Status: http.StatusCreated, Request: joinRequest{}, Answer: joinAnswer{}, serve: (*Agent).join},
		{Method: "DELETE", Path: "/v1/owners/{id}", Summary: "Leave: release all leases", Status: ok, Answer: struct{}{}, serve: answer((*Agent).leave)},
		{Method: "POST", Path: "/v1/owners/{id}/leases", Summary: "List all leases", Status: ok, Request: struct{}{}, Answer: leasesAnswer{}, serve: answerOwner((*session).leases)},
		{Method: "POST", Path: "/v1/owners/{id}/check", Summary: "Check that a key is held", Status: ok, Request: keyDocument{}, Answer: checkAnswer{}, serve: answerOwner((*session).check)},
		{Method: "POST", Path: "/v1/owners/{id}/held", Summary: "Check that a key was held without a gap", Status: ok, Request: heldRequest{}, Answer: heldAnswer{}, serve: answerOwner((*session).held)},
		{Method: "POST", Path: "/v1/owners/{id}/await", Summary: "Wait until a key is held", Status: ok, Request: awaitRequest{}, Answer: awaitAnswer{}, serve: answerOwner((*session).await)},
		{Method: "POST", Path: "/v1/owners/{id}/report", Summary: "Report the cost of work on keys", Status: ok, Request: reportRequest{}, Answer: reportAnswer{}, serve: answerOwner((*session).report)},
		{Method: "GET", Path: "/v1/owners/{id}/events", Summary: "Follow the leases of an owner", Status: ok, Lines: []any{event{}, alive{}}, serve: (*Agent).events},
		{
			Method: "GET", Path: "/v1/namespaces/{namespace}/find", Summary: "Find the owner of a key", Status: ok, Answer: findAnswer{}, serve: answer((*Agent).find),
			Query: append(key, Parameter{"refresh", "true after a refusal of the server: request newer changes"}),
		},
		{
			Method: "GET", Path: "/v1/namespaces/{namespace}/losses", Summary: "Follow the losses of a namespace", Status: ok,
			Lines: []any{lossBegin{}, lossLine{}, contactLine{}, alive{}}, serve: (*Agent).losses,
			Query: []Parameter{{"since", "resume of the last handled loss, or lsn of the line begin (default: the present)"}},
		},
	}
}

// Failure returns the type of the body of a failed request.
func Failure() any { return errorDocument{} }

func answer(do func(*Agent, http.ResponseWriter, *http.Request) (any, error)) func(*Agent, http.ResponseWriter, *http.Request) {
	return func(a *Agent, w http.ResponseWriter, r *http.Request) {
		handle(func(w http.ResponseWriter, r *http.Request) (any, error) { return do(a, w, r) })(w, r)
	}
}

func answerOwner[Body any](do func(*session, *http.Request, *Body) (any, error)) func(*Agent, http.ResponseWriter, *http.Request) {
	return func(a *Agent, w http.ResponseWriter, r *http.Request) { handleOwner(a, do)(w, r) }
}

func (a *Agent) health(http.ResponseWriter, *http.Request) (any, error) { return struct{}{}, nil }
