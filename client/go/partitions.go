package timecache

import (
	"bytes"
	"hash/crc32"

	pb "timecached.dev/client/go/gen/timecache/v1"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// partitionOf is the partition of a key, of so many: as the server has it, and GetOwners
// documents it. O(key).
func partitionOf(key []byte, partitions int) int {
	return int(crc32.Checksum(hashTag(key), castagnoli) % uint32(partitions))
}

// hashTag is what of a key decides its partition: what is between the first { and the next }, if
// that is not empty, else all of it.
func hashTag(key []byte) []byte {
	if _, after, has := bytes.Cut(key, []byte{'{'}); has {
		if end := bytes.IndexByte(after, '}'); end > 0 {
			return after[:end]
		}
	}
	return key
}

func keyOf(operation *pb.Operation) []byte {
	switch o := operation.Request.(type) {
	case *pb.Operation_Put:
		return o.Put.Key
	case *pb.Operation_Get:
		return o.Get.Key
	case *pb.Operation_Remove:
		return o.Remove.Key
	case *pb.Operation_Contains:
		return o.Contains.Key
	case *pb.Operation_Touch:
		return o.Touch.Key
	case *pb.Operation_Append:
		return o.Append.Key
	case *pb.Operation_Combine:
		return o.Combine.Key
	case *pb.Operation_Gather:
		return o.Gather.Key
	}
	return nil
}
