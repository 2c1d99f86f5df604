package main

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/device"
	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/examples/livemesh/feed"
	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/lookup"
)

// The services' namespaces, which are also the first segments of their paths.
const (
	documentsSpace leasehold.Namespace = device.Documents
	topicsSpace    leasehold.Namespace = device.Topics
	queuesSpace    leasehold.Namespace = "queues"
	feedsSpace     leasehold.Namespace = "feeds"
	imSpace        leasehold.Namespace = "im"
)

// A service is a server that has joined its namespace.
type service interface {
	Handler() http.Handler
	Close(ctx context.Context) error
}

// A role is a service and its command.
type role struct {
	space leasehold.Namespace
	about string
	uses  []leasehold.Namespace // of which its servers have lookups
	join  func(ctx context.Context, s *site) (service, error)
	// maxOutstanding is a frontend's limit of concurrent requests to one of its servers; 0
	// is the default of package leasehttp.
	maxOutstanding int
}

func roles() []role {
	type spaces []leasehold.Namespace
	return []role{
		{documentsSpace, "documents made of sections, such as addresses of devices", spaces{topicsSpace}, joinDocuments, 0},
		{topicsSpace, "topics: subscriptions and published messages", spaces{queuesSpace}, joinTopics, 0},
		{queuesSpace, "queues: messages for devices, and losses of other services", spaces{documentsSpace, topicsSpace}, joinQueues, 0},
		{feedsSpace, "feeds of coalesced activities", nil, joinFeeds, 64}, // PRS 3.3
		{imSpace, "the presence of users of an instant messenger", nil, joinIM, 0},
	}
}

func (r role) command() *cobra.Command {
	s := &site{}
	cmd := &cobra.Command{
		Use:   string(r.space),
		Short: "Serve " + r.about,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.serve(cmd, string(r.space), r.uses, r.join) },
	}
	s.flags(cmd, "127.0.0.1:0")
	cmd.Flags().StringVar(&s.name, "name", "", "owner ID, stable across restarts (default: the advertised address)")
	return cmd
}

func joinDocuments(ctx context.Context, s *site) (service, error) {
	topics, err := s.client(topicsSpace)
	if err != nil {
		return nil, err
	}
	publisher := &pubsub.Client{Client: topics}
	return documents.Join(ctx, s.owner(documentsSpace), func(ctx context.Context, news documents.News) error {
		_, err := publisher.Publish(ctx, news.Document, news) // the topic has the name of the document
		return err
	})
}

func joinTopics(ctx context.Context, s *site) (service, error) {
	queues, err := s.client(queuesSpace)
	if err != nil {
		return nil, err
	}
	return pubsub.Join(ctx, s.owner(topicsSpace), &queue.Client{Client: queues})
}

func joinQueues(ctx context.Context, s *site) (service, error) {
	watch := make(map[string]*lookup.Lookup)
	for space, l := range s.lookups {
		watch[string(space)] = l
	}
	return queue.Join(ctx, s.owner(queuesSpace), queue.Config{Watch: watch})
}

func joinFeeds(ctx context.Context, s *site) (service, error) {
	return feed.Join(ctx, s.owner(feedsSpace), feed.Config{})
}

func joinIM(ctx context.Context, s *site) (service, error) { return im.Join(ctx, s.owner(imSpace)) }

func newFrontendCommand() *cobra.Command {
	s, uses := &site{}, []leasehold.Namespace(nil)
	for _, r := range roles() {
		uses = append(uses, r.space)
	}
	cmd := &cobra.Command{
		Use:   "frontend",
		Short: "Serve the API of all services, and a page",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.serve(cmd, "frontend", uses, joinFrontend) },
	}
	s.flags(cmd, "127.0.0.1:8080")
	return cmd
}

// A stateless service has nothing to transfer.
type stateless struct{ handler http.Handler }

func (s stateless) Handler() http.Handler     { return s.handler }
func (stateless) Close(context.Context) error { return nil }

func joinFrontend(_ context.Context, s *site) (service, error) {
	cfg := frontend.Config{Logger: s.log}
	for _, r := range roles() {
		cfg.Services = append(cfg.Services, frontend.Service{Prefix: "/" + string(r.space) + "/", Lookup: s.lookups[r.space], MaxOutstanding: r.maxOutstanding})
	}
	handler, err := frontend.New(cfg)
	return stateless{handler}, err
}
