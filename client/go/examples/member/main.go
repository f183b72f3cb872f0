// Member joins a consumer group, acknowledges its events, and prints a line for each: key,
// value in hexadecimal digits and attempt, with tabs between. It ends after so many events,
// or on SIGTERM.
//
//	member ADDRESS NAMESPACE GROUP COUNT
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"timecached.dev/client/go"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 5 {
		log.Fatal("usage: member ADDRESS NAMESPACE GROUP COUNT")
	}
	count, err := strconv.Atoi(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], count); err != nil {
		log.Fatal(err)
	}
}

func run(address, namespace, group string, count int) error {
	client, err := timecache.NewClient(address, timecache.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// With one handler at a time the lines are whole, and no event is begun beyond the
	// last one.
	worker := client.Worker(group, func(_ context.Context, event *timecache.ExpiredEvent) error {
		fmt.Printf("%s\t%x\t%d\n", event.Key, event.Value, event.Attempt)
		if count--; count == 0 {
			stop()
		}
		return nil
	}, timecache.WorkerOptions{Concurrency: 1, OnError: func(err error) { log.Print(err) }})
	return worker.Run(ctx)
}
