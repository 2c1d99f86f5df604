package admin_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leasehold-dev/leasehold/admin"
)

// A program drains an owner before its computer is restarted.
func Example() {
	ctx := context.Background()
	c, err := admin.New(admin.Config{Managers: []string{"127.0.0.1:7400"}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // nothing is in flight
	drain, err := c.Drain(ctx, "presence", "server-3", admin.OrderOptions{}, false)
	if err != nil {
		log.Fatal(err)
	}
	err = drain.Wait(ctx, func(p admin.Progress, _ error) { fmt.Printf("%.0f %% moved\n", 100*p.Share) })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(drain.Outcome)
}
