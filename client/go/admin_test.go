package timecache_test

import (
	"bytes"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"timecached.dev/client/go"
	"timecached.dev/client/go/timecachetest"
)

func TestAdministration(t *testing.T) {
	client, clock := virtual(t, timecache.NamespaceOptions{TTL: new(10 * time.Second), NumBuckets: new(uint32(11)),
		MaxEntries: new(uint64(7)), Sliding: new(true)})
	ctx := t.Context()
	namespace := must(client.UpdateNamespace(ctx, "main", timecache.NamespaceOptions{MaxBytes: new(uint64(1 << 20)),
		LimitPolicy: timecache.EvictOldest}, timecache.ToDefault("sliding")))(t)
	o := namespace.Options
	if *o.TTL != 10*time.Second || *o.MaxEntries != 7 || *o.MaxBytes != 1<<20 || *o.Sliding ||
		o.LimitPolicy != timecache.EvictOldest || o.Durability != timecache.Memory || *o.EventRetention != 5*time.Minute ||
		namespace.BucketWidth != time.Second || namespace.Statistics != nil {
		t.Errorf("%+v", namespace)
	}
	_, err := client.CreateNamespace(ctx, "main", timecache.NamespaceOptions{})
	refused(t, err, codes.AlreadyExists, timecache.NamespaceExists)
	must(client.Put(ctx, "k", nil))(t)
	equal(t, "rotated", must(client.RotateNamespace(ctx, "main"))(t), 1)
	described := must(client.GetNamespace(ctx, "main", timecache.IncludeStatistics))(t)
	equal(t, "rotated", described.Statistics.GetRotated(), 1)
	all := must(client.ListNamespaces(ctx))(t)
	equal(t, "namespaces", []string{all[0].Name, all[1].Name}, []string{"default", "main"})

	group := must(client.CreateGroup(ctx, "g", timecache.GroupOptions{AckTimeout: new(time.Minute)}, timecache.FromEarliest))(t)
	if *group.Options.AckTimeout != time.Minute || *group.Options.MaxAttempts != 5 || *group.Options.UnusedTTL != 0 {
		t.Errorf("%+v", group)
	}
	group = must(client.UpdateGroup(ctx, "g", timecache.GroupOptions{MaxAttempts: new(uint32(2))}, timecache.ToDefault("ack_timeout"),
		timecache.RequestID("update")))(t)
	if *group.Options.AckTimeout != 30*time.Second || *group.Options.MaxAttempts != 2 {
		t.Errorf("%+v", group)
	}
	must(clock.Advance(ctx, time.Microsecond))(t) // Until then the event may not be published.
	group = must(client.GetGroup(ctx, "g", timecache.IncludeStatistics))(t)
	equal(t, "backlog", group.Statistics.GetBacklog(), 1)
	equal(t, "groups", len(must(client.ListGroups(ctx))(t)), 1)
	if err := client.DeleteGroup(ctx, "g"); err != nil {
		t.Error(err)
	}
	_, err = client.GetGroup(ctx, "g")
	refused(t, err, codes.NotFound, timecache.GroupNotFound)
	if err := client.DeleteNamespace(ctx, "main"); err != nil {
		t.Error(err)
	}
	_, err = client.Size(ctx)
	refused(t, err, codes.NotFound, timecache.NamespaceNotFound)

	server := must(client.GetServer(ctx))(t)
	if server.Version == "" || server.Namespaces.GetUsed() != 1 {
		t.Errorf("%+v", server)
	}
	if err := client.Health(ctx); err != nil {
		t.Error(err)
	}
	_, err = client.BackupJournal(ctx, &bytes.Buffer{})
	refused(t, err, codes.FailedPrecondition, timecache.NoJournal)
}

func TestBackup(t *testing.T) {
	client := timecachetest.Start(t, "--journal", t.TempDir()).Client(timecache.Options{})
	var tar bytes.Buffer
	written := must(client.BackupJournal(t.Context(), &tar))(t)
	if written == 0 || written != int64(tar.Len()) {
		t.Error(written, tar.Len())
	}
}
