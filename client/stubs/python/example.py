"""A put, the event of its expiry, and the reason of an error."""

import sys
import time

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2
from grpc_status import rpc_status

sys.path.insert(0, "gen")
from timecache.v1 import data_pb2, data_pb2_grpc, errors_pb2, watch_pb2

address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7171"
key = f"python/{time.time_ns()}".encode()
stub = data_pb2_grpc.TimeCacheServiceStub(grpc.insecure_channel(address))

# The first message says that the watch stands: what dies from now on is told.
# To go on after a break: WatchExpiredRequest(..., resume_tokens=[message.resume_token]).
watch = stub.WatchExpired(
    watch_pb2.WatchExpiredRequest(namespaces=["default"], key_prefix=key), timeout=10)
next(watch)

put = stub.Put(data_pb2.PutRequest(namespace="default", key=key, value=b"v",
                                   ttl=Duration(seconds=1)), timeout=5)
event = next(event for message in watch for event in message.events)
watch.cancel()
assert (event.key, event.value, event.version) == (key, b"v", put.version), event
print("expired:", event.key.decode(), event.death_time.ToJsonString())

try:
    stub.Get(data_pb2.GetRequest(namespace="absent", key=key), timeout=5)
    raise SystemExit("a namespace that does not exist was found")
except grpc.RpcError as error:
    info = error_details_pb2.ErrorInfo()
    for detail in rpc_status.from_call(error).details:
        if detail.Unpack(info):
            break
not_found = errors_pb2.ErrorReason.Name(errors_pb2.NAMESPACE_NOT_FOUND)
assert (info.domain, info.reason) == ("timecached", not_found), info
print("error:", info.reason)
