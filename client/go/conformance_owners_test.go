package timecache_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

var (
	nodesStarted   = regexp.MustCompile(`server_started .*?address=(\S+)`)
	nodesForwarded = regexp.MustCompile(`three_nodes_stopped .*?forwarded_calls=(\d+)`)
)

// forwardedBy says how many calls nodes that share the ownership had each other answer, of those of
// `work`.
func forwardedBy(t *testing.T, work func(address string)) int {
	t.Helper()
	nodes := exec.Command(os.Getenv("TIMECACHED"), "--listen", "127.0.0.1:0", "--virtual-clock")
	log := must(nodes.StderrPipe())(t)
	if err := nodes.Start(); err != nil {
		t.Fatal(err)
	}
	defer nodes.Wait()
	defer nodes.Process.Kill()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if match := nodesStarted.FindStringSubmatch(lines.Text()); match != nil {
			work(match[1])
			nodes.Process.Signal(syscall.SIGTERM)
		}
		if match := nodesForwarded.FindStringSubmatch(lines.Text()); match != nil {
			return must(strconv.Atoi(match[1]))(t)
		}
	}
	t.Fatal("the nodes do not say it")
	return 0
}

func callsReachTheirOwners(t *testing.T) {
	const rounds = 100
	forwarded := map[bool]int{}
	for _, isRouted := range []bool{false, true} {
		forwarded[isRouted] = forwardedBy(t, func(address string) {
			client := must(timecache.NewClient(address, timecache.Options{OwnerRouting: isRouted}))(t)
			defer client.Close()
			answer := must(pb.NewNamespaceServiceClient(client.Conn()).GetOwners(t.Context(), &pb.GetOwnersRequest{Name: "default"}))(t)
			equal(t, "partitions", len(answer.Addresses), 16)
			for partition, owner := range answer.Addresses {
				if isRouted && owner != address {
					eventually(t, func() bool { return timecache.OwnerOf(client, keyIn(partition)) == owner })
				}
			}
			for round := range rounds {
				for partition := range 16 {
					key := fmt.Sprintf("{%s}%d", keyIn(partition), round)
					must(client.Put(t.Context(), key, []byte(key)))(t)
					_, found, err := client.Get(t.Context(), key, timecache.GetOption(timecache.Batching(false)))
					equal(t, "found", found, true)
					equal(t, "error", err, nil)
				}
				for _, result := range must(client.Execute(t.Context(), gets()))(t) {
					equal(t, "error", result.Err, nil)
				}
			}
		})
	}
	t.Log("forwarded:", forwarded[false], "and where clients go to the owners:", forwarded[true])
	if forwarded[false] < 16*rounds || forwarded[true] > rounds/2 {
		t.Error("forwarded:", forwarded)
	}
}
