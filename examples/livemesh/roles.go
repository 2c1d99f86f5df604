package main

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/device"
	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/examples/livemesh/feed"
	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
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
	join  func(ctx context.Context, s *site, as owner.Config) (service, error)
	// maxOutstanding is a frontend's limit of concurrent requests to one of its servers; 0
	// is the default of package leasehttp.
	maxOutstanding int
}

func roles() []role {
	return []role{
		{documentsSpace, "documents made of sections, such as addresses of devices", joinDocuments, 0},
		{topicsSpace, "topics: subscriptions and published messages", joinTopics, 0},
		{queuesSpace, "queues: messages for devices, and losses of other services", joinQueues, 0},
		{feedsSpace, "feeds of coalesced activities", joinFeeds, 64}, // PRS 3.3
		{imSpace, "the presence of users of an instant messenger", joinIM, 0},
	}
}

func namespaces() (all []leasehold.Namespace) {
	for _, r := range roles() {
		all = append(all, r.space)
	}
	return all
}

func (r role) command() *cobra.Command {
	s, name := &site{}, ""
	cmd := &cobra.Command{
		Use:   string(r.space),
		Short: "Serve " + r.about,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.serveRole(cmd, r, leasehold.OwnerID(name)) },
	}
	s.flags(cmd, "127.0.0.1:0")
	cmd.Flags().StringVar(&name, "name", "", "owner ID, stable across restarts (default: the advertised address)")
	return cmd
}

func joinDocuments(ctx context.Context, s *site, as owner.Config) (service, error) {
	topics, err := s.client(ctx, topicsSpace)
	if err != nil {
		return nil, err
	}
	publisher := &pubsub.Client{Client: topics}
	return documents.Join(ctx, as, func(ctx context.Context, news documents.News) error {
		_, err := publisher.Publish(ctx, news.Document, news) // the topic has the name of the document
		return err
	})
}

func joinTopics(ctx context.Context, s *site, as owner.Config) (service, error) {
	queues, err := s.client(ctx, queuesSpace)
	if err != nil {
		return nil, err
	}
	return pubsub.Join(ctx, as, &queue.Client{Client: queues})
}

func joinQueues(ctx context.Context, s *site, as owner.Config) (service, error) {
	watch := make(map[string]*lookup.Lookup)
	for _, space := range []leasehold.Namespace{documentsSpace, topicsSpace} {
		l, err := s.lookup(ctx, space)
		if err != nil {
			return nil, err
		}
		watch[string(space)] = l
	}
	return queue.Join(ctx, as, queue.Config{Watch: watch})
}

func joinFeeds(ctx context.Context, _ *site, as owner.Config) (service, error) {
	return feed.Join(ctx, as, feed.Config{})
}

func joinIM(ctx context.Context, s *site, as owner.Config) (service, error) {
	feeds, err := s.client(ctx, feedsSpace)
	if err != nil {
		return nil, err
	}
	reporter := &feed.Client{Client: feeds}
	return im.Join(ctx, as, im.Config{Logger: s.log, Announce: func(ctx context.Context, user, text string) error {
		_, err := reporter.Report(ctx, user, feed.Event{Text: text}) // "is now online"
		return err
	}})
}
