package timecache_test

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/codes"
	"timecached.dev/client/go"
	"timecached.dev/client/go/timecachetest"
)

func TestHealth(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{})
	if err := client.Health(t.Context()); err != nil {
		t.Error(err)
	}
	_, err := client.BackupJournal(t.Context(), &bytes.Buffer{})
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
