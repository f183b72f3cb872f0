// A put, the event of its expiry, and the reason of an error.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	tc "timecached.dev/gen/go/timecache/v1"
)

func main() {
	address := "127.0.0.1:7171"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	if err := run(address); err != nil {
		log.Fatal(err)
	}
}

func run(address string) error {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	stub := tc.NewTimeCacheServiceClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	key := fmt.Appendf(nil, "go/%d", time.Now().UnixNano())

	// The first message says that the watch stands: what dies from now on is told.
	// To go on after a break: ResumeTokens: [][]byte{message.ResumeToken}.
	watch, err := stub.WatchExpired(ctx, &tc.WatchExpiredRequest{
		Namespaces: []string{"default"}, KeyPrefix: key})
	if err != nil {
		return err
	}
	if _, err = watch.Recv(); err != nil {
		return err
	}
	put, err := stub.Put(ctx, &tc.PutRequest{
		Namespace: "default", Key: key, Value: []byte("v"), Ttl: durationpb.New(time.Second)})
	if err != nil {
		return err
	}
	var event *tc.ExpiredEvent
	for event == nil {
		message, err := watch.Recv()
		if err != nil {
			return err
		}
		if len(message.Events) > 0 {
			event = message.Events[0]
		}
	}
	if string(event.Key) != string(key) || string(event.Value) != "v" || event.Version != put.Version {
		return fmt.Errorf("another entry expired: %v", event)
	}
	fmt.Println("expired:", string(event.Key), event.DeathTime.AsTime().Format(time.RFC3339Nano))

	_, err = stub.Get(ctx, &tc.GetRequest{Namespace: "absent", Key: key})
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			notFound := tc.ErrorReason_NAMESPACE_NOT_FOUND.String()
			if info.Domain != "timecached" || info.Reason != notFound {
				return fmt.Errorf("another error: %v", info)
			}
			fmt.Println("error:", info.Reason)
			return nil
		}
	}
	return errors.Join(errors.New("no ErrorInfo"), err)
}
