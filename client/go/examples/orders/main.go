// Orders waits 15 minutes for the payment of each order, and cancels what is not paid: an
// order is an entry, a payment removes it, and its expiry goes to one of the workers.
//
//	orders [-server ADDRESS] place ID TOTAL
//	orders [-server ADDRESS] pay ID
//	orders [-server ADDRESS] work
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"timecached.dev/client/go"
)

const patience = 15 * time.Minute

// Order is what an entry holds.
type Order struct {
	Total int `json:"total"`
}

func main() {
	log.SetFlags(0)
	address := flag.String("server", "127.0.0.1:7171", "host:port")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, err := timecache.NewClient(*address, timecache.Options{Namespace: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if err := run(ctx, client, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, client *timecache.Client, args []string) error {
	if err := prepare(ctx, client); err != nil {
		return err
	}
	switch {
	case len(args) == 3 && args[0] == "place":
		total, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return place(ctx, client, args[1], Order{total})
	case len(args) == 2 && args[0] == "pay":
		return pay(ctx, client, args[1])
	case len(args) == 1 && args[0] == "work":
		return client.Worker("cancel", cancel, timecache.WorkerOptions{
			OnError: func(err error) { log.Print(err) }}).Run(ctx)
	}
	return errors.New("usage: orders [-server ADDRESS] (place ID TOTAL | pay ID | work)")
}

// prepare makes the namespace and the group; the group is there before the first order, so
// that none is missed.
func prepare(ctx context.Context, client *timecache.Client) error {
	_, err := client.CreateNamespace(ctx, client.Namespace(), timecache.NamespaceOptions{TTL: new(patience)})
	if err != nil && !errors.Is(err, timecache.NamespaceExists) {
		return err
	}
	_, err = client.CreateGroup(ctx, "cancel", timecache.GroupOptions{}, timecache.FromEarliest)
	if errors.Is(err, timecache.GroupExists) {
		return nil
	}
	return err
}

func place(ctx context.Context, client *timecache.Client, id string, order Order) error {
	_, err := client.PutJSON(ctx, id, order, timecache.IfAbsent)
	if errors.Is(err, timecache.KeyExists) {
		return fmt.Errorf("order %s has been placed", id)
	}
	return err
}

func pay(ctx context.Context, client *timecache.Client, id string) error {
	removed, err := client.Remove(ctx, id)
	if err == nil && !removed.Removed {
		return fmt.Errorf("order %s has been paid, or was cancelled", id)
	}
	return err
}

// cancel handles the expiry of an order. It may be called again for the same one: with an
// error, or after a crash.
func cancel(_ context.Context, event *timecache.ExpiredEvent) error {
	var order Order
	if err := json.Unmarshal(event.Value, &order); err != nil {
		return err
	}
	fmt.Printf("cancelled %s: %d was not paid\n", event.Key, order.Total)
	return nil
}
