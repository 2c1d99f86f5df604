module github.com/leasehold-dev/leasehold/examples/livemesh

go 1.26.0

replace github.com/leasehold-dev/leasehold => ../../

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/chromedp/chromedp v0.21.0
	github.com/leasehold-dev/leasehold v0.0.0
	github.com/spf13/cobra v1.10.2
	golang.org/x/sync v0.24.0
	google.golang.org/grpc v1.85.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/chromedp/cdproto v0.157.8 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/pflag v1.0.10 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
