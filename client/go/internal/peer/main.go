// Peer does what tests/clients/cross_test.py says, so that clients in several languages
// meet: client/python/tests/peer.py describes the lines that this reads and writes.
//
//	peer ADDRESS NAMESPACE
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"timecached.dev/client/go"
)

func main() {
	log.SetFlags(0)
	client, err := timecache.NewClient(os.Args[1], timecache.Options{Namespace: os.Args[2], Timeout: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer, err := perform(client, strings.Fields(lines.Text()))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(answer)
	}
}

func toHex(value string) string {
	if value == "" {
		return "-"
	}
	return hex.EncodeToString([]byte(value))
}

func fromHex(word string) string {
	value, err := hex.DecodeString(strings.TrimPrefix(word, "-"))
	if err != nil {
		log.Fatal(err)
	}
	return string(value)
}

func shown(value []byte, parts *timecache.GatheredParts) string {
	if parts == nil {
		return toHex(string(value))
	}
	var pairs []string
	for _, part := range parts.Parts {
		pairs = append(pairs, toHex(part.Name)+":"+toHex(string(part.Value)))
	}
	return strings.Join(pairs, ",")
}

func perform(client *timecache.Client, words []string) (string, error) {
	ctx := context.Background()
	switch key := words[1]; words[0] {
	case "put":
		_, err := client.Put(ctx, fromHex(key), []byte(fromHex(words[2])))
		return "done", err
	case "get":
		entry, found, err := client.Get(ctx, fromHex(key))
		if !found {
			return "none", err
		}
		return shown(entry.Value, entry.Parts), nil
	case "append":
		result, err := client.Append(ctx, fromHex(key), []byte(fromHex(words[2])))
		return fmt.Sprint(result.ValueBytes), err
	case "combine":
		number, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil {
			return "", err
		}
		result, err := client.Combine(ctx, fromHex(key), timecache.Add(number))
		return fmt.Sprint(result.Result), err
	case "gather":
		return gather(ctx, client, words[1:])
	case "expired":
		return expired(ctx, client, key)
	}
	return "", fmt.Errorf("unknown operation %s", words[0])
}

func gather(ctx context.Context, client *timecache.Client, words []string) (string, error) {
	expected, err := strconv.Atoi(words[3])
	if err != nil {
		return "", err
	}
	result, err := client.Gather(ctx, fromHex(words[0]), fromHex(words[1]), []byte(fromHex(words[2])),
		timecache.PartCount(expected))
	if result.Parts == nil {
		return "waiting", err
	}
	var parts []string
	for _, part := range result.Parts.Parts {
		parts = append(parts, toHex(part.Name)+"="+toHex(string(part.Value)))
	}
	return strings.Join(parts, " "), nil
}

func expired(ctx context.Context, client *timecache.Client, count string) (string, error) {
	left, err := strconv.Atoi(count)
	if err != nil {
		return "", err
	}
	var events []string
	for batch, err := range client.Watch(ctx, timecache.WatchOptions{Start: timecache.FromEarliest}) {
		if err != nil {
			return "", err
		}
		for _, event := range batch.Events {
			events = append(events, toHex(event.Key)+"="+shown(event.Value, event.Parts))
		}
		if len(events) >= left {
			break
		}
	}
	return strings.Join(events, " "), nil
}
