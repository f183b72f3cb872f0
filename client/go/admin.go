package timecache

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// What the server tells of itself, as generated from the protos: see there.
type (
	// NamespaceStatistics is what a namespace holds and has done since it was made.
	NamespaceStatistics = pb.NamespaceStatistics
	// GroupStatistics is what a consumer group holds and has done since it was made.
	GroupStatistics = pb.GroupStatistics
	// DeathsAhead is what of a namespace dies when.
	DeathsAhead = pb.GetDeathsResponse
	// ServerInfo has version, age and limits of a server, and how far they are used. Who
	// may not read all namespaces is told no limits: they are nil.
	ServerInfo = pb.GetServerResponse
	// HotKeys are the keys of a namespace that are used most, by a sample.
	HotKeys = pb.GetHotKeysResponse
	// GroupMember is a stream that is a member of a consumer group.
	GroupMember = pb.GroupMember
	// Identity is the caller as the server sees it, and what it may do.
	Identity = pb.WhoAmIResponse
	// Connection is one of a client to the server.
	Connection = pb.Connection
	// SlowCalls are the last 256 calls that took longer than the server's log.slow_call.
	SlowCalls = pb.ListSlowCallsResponse
	// ClusterInfo is a cluster as one of its nodes sees it: the nodes, who owns, and the
	// standby that a handover goes to.
	ClusterInfo = pb.GetClusterResponse
)

// LimitPolicy says what to do with a put that would pass a namespace's limits.
type LimitPolicy int

const (
	// Reject it: ResourceExhausted. The default.
	Reject = LimitPolicy(pb.LimitPolicy_LIMIT_POLICY_REJECT)
	// EvictOldest kills the bucket that would die next, again until the put fits.
	EvictOldest = LimitPolicy(pb.LimitPolicy_LIMIT_POLICY_EVICT_OLDEST)
)

// Durability says what a namespace survives.
type Durability int

const (
	// Memory: nothing. The default.
	Memory = Durability(pb.Durability_DURABILITY_MEMORY)
	// Async: a crash of the process; at power loss it loses the last 100 ms at most.
	Async = Durability(pb.Durability_DURABILITY_ASYNC)
	// Sync: a loss of power, too: a write is acknowledged once it is on disk.
	Sync = Durability(pb.Durability_DURABILITY_SYNC)
	// Replicated: the loss of a machine; only in a cluster, which has it in place of Async and
	// Sync.
	Replicated = Durability(pb.Durability_DURABILITY_REPLICATED)
)

// RestartPolicy says what a restart of the server means for the entries of a durable
// namespace.
type RestartPolicy int

const (
	// Fire: what was due while the server was down dies at its start. The default.
	Fire = RestartPolicy(pb.RestartPolicy_RESTART_POLICY_FIRE)
	// Pause: the time for which the server was down does not count.
	Pause = RestartPolicy(pb.RestartPolicy_RESTART_POLICY_PAUSE)
)

// NamespaceOptions say how a namespace behaves. What is nil, or an enum's zero, is unset: the
// default where a namespace is made, no change where it is updated; in an answer all are set.
//
//	timecache.NamespaceOptions{TTL: new(15 * time.Minute), Durability: timecache.Sync}
type NamespaceOptions struct {
	// TTL of an entry that brings none of its own: 1 ms to 10 years. Default 30 s.
	TTL *time.Duration
	// NumBuckets is how many time buckets TTL is divided into, plus one: an entry lives
	// at most TTL / (NumBuckets - 1) too long. 2 to 100,000. Default 101.
	NumBuckets *uint32
	// MaxTTL is the longest own time to live. Default 7 days, or TTL if that is longer.
	MaxTTL *time.Duration
	// Sliding: Get renews the time to live. Default false.
	Sliding *bool
	// MaxLife is the longest life of an entry since its CreateTime, whatever renews it or
	// is put over it: TTL to 10 years, or 0: no bound. Default 0.
	MaxLife *time.Duration
	// IdempotencyWindow is how long the answer to a call with an IdempotencyID is
	// remembered: 0, no call may have one, or 1 ms to 7 days. Default 0.
	IdempotencyWindow *time.Duration
	// IdempotencyMaxIDs is how many answers are: 1,000 to 1,000,000. Default 100,000.
	IdempotencyMaxIDs *uint64
	// MaxEntries and MaxBytes limit what lives. 0: no limit. Default 0.
	MaxEntries, MaxBytes *uint64
	// LimitPolicy is what happens at these limits. Default Reject.
	LimitPolicy LimitPolicy
	// MaxValueBytes is the largest value: 1 B to 16 MiB. Default 1 MiB.
	MaxValueBytes *uint32
	// EventRetention is how long an event stays readable for watchers that start at
	// FromEarliest: 0 to 7 days. Default 5 min.
	EventRetention *time.Duration
	// EventRetentionBytes is the memory for them: 1 MiB to 64 GiB. Default 64 MiB.
	EventRetentionBytes *uint64
	// ChangeRetention is how long puts, renewals and removals stay readable for WatchChanges: 0,
	// they are not kept and cost nothing, or 1 ms to 7 days. Default 0.
	ChangeRetention *time.Duration
	// ChangeRetentionBytes is the memory for them; beyond it the oldest are dropped: 1 MiB to
	// 64 GiB. Default 64 MiB.
	ChangeRetentionBytes *uint64
	// NumShards are the parts of the map with a lock of their own: a power of two from 1
	// to 256, fixed at creation. Default 16.
	NumShards *uint32
	// DeadLetterNamespace is where the events of consumer groups go that were given out
	// in vain. Empty: none. Default empty.
	DeadLetterNamespace *string
	// MaxOperationsPerSecond, averaged; 0: no limit. Default 0.
	MaxOperationsPerSecond *uint32
	// MaxBacklogBytes is the memory for what all consumer groups have not settled. 0, or
	// 1 MiB to 64 GiB. Default 0, which stands for MaxBytes + EventRetentionBytes, or for
	// 256 MiB without MaxBytes.
	MaxBacklogBytes *uint64
	// UnusedGroupTTL is the GroupOptions.UnusedTTL of groups that are made by use.
	// Default 7 days.
	UnusedGroupTTL *time.Duration
	// Durability is Memory by default; whether it is Memory is fixed at creation.
	Durability Durability
	// RestartPolicy is Fire by default.
	RestartPolicy RestartPolicy
}

// Namespace describes one.
type Namespace struct {
	// Name has 1 to 63 characters, [a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?
	Name string
	// Options are those in force.
	Options NamespaceOptions
	// BucketWidth is the most that an entry may outlive its time to live.
	BucketWidth time.Duration
	// Statistics are there where they were asked for.
	Statistics *NamespaceStatistics
	// Warnings of CreateNamespace and UpdateNamespace say what is allowed and probably not
	// meant, a sentence each.
	Warnings []string
}

// GroupOptions say how a consumer group behaves. What is nil is unset: as in
// [NamespaceOptions].
type GroupOptions struct {
	// AckTimeout is how long a member has to settle an event before it is given to
	// another: 10 ms to 7 days. Default 30 s.
	AckTimeout *time.Duration
	// MaxAttempts is how often an event is given out before it goes to the namespace's
	// DeadLetterNamespace, if there is one: 1 to 1,000,000. Default 5.
	MaxAttempts *uint32
	// MaxBacklogBytes is the memory for unsettled events; beyond it the oldest that no
	// member holds are lost. 1 MiB to 64 GiB. Default 256 MiB.
	MaxBacklogBytes *uint64
	// UnusedTTL is how long the group may be without a member before it is deleted. 0: it
	// stays. 0, or 1 s to 10 years. Default 0; of a group that is made by use, the
	// namespace's UnusedGroupTTL.
	UnusedTTL *time.Duration
	// RetryDelay is how long an event waits after its first attempt that counted, if the Nack
	// names no delay, or it was not settled in time; after each further one RetryMultiplier
	// times as long, up to MaxRetryDelay; each shortened at random by up to
	// RetryJitterPercent. 0 to 7 days, 1 to 100, 0 to 7 days, 0 to 100. Defaults: 0, 2, 7
	// days, 0.
	RetryDelay         *time.Duration
	RetryMultiplier    *uint32
	MaxRetryDelay      *time.Duration
	RetryJitterPercent *uint32
	// RetryDelays are the waits after the first, the second, ... attempt that counted, in place
	// of RetryDelay, RetryMultiplier and MaxRetryDelay; after the last one the last holds. At most
	// 32, each 0 to 7 days. Nil: unset; [ToDefault] clears it. Default none.
	RetryDelays []time.Duration
	// Paused: nothing is given out until this is false again.
	Paused *bool
	// KeyPrefix: only events whose keys begin with this are the group's; others cost it nothing.
	// At most 256 B. Fixed when the group is made. Default empty: all.
	KeyPrefix *string
	// SingleActive: one member gets all events, in order of death as far as attempts do not fail,
	// the one that has been a member longest; the others wait for its stream to end. FetchExpired
	// is refused. Default false.
	SingleActive *bool
}

// Group describes a consumer group.
type Group struct {
	// Name has the form of a namespace's.
	Name string
	// Namespace is the one whose events it shares out.
	Namespace string
	// Options are those in force.
	Options GroupOptions
	// Statistics are there where they were asked for.
	Statistics *GroupStatistics
	// CreatedBy is the principal that made it.
	CreatedBy string
}

// UpdateOption: ToDefault, or what goes with every call.
type UpdateOption interface {
	option
	forUpdate()
}

type toDefault []string

// ToDefault sets options to their defaults, by their names in the protos, such as
// "max_entries". For UpdateNamespace, UpdateGroup.
func ToDefault(names ...string) UpdateOption { return toDefault(names) }

func (d toDefault) set(s *settings) { s.toDefault = append(s.toDefault, d...) }
func (toDefault) forUpdate()        {}
func (callOption) forUpdate()       {}

// CreateNamespace makes a namespace. AlreadyExists (NamespaceExists) if there is one of that
// name; ResourceExhausted (MaxNamespaces).
func (c *Client) CreateNamespace(ctx context.Context, name string, options NamespaceOptions, callOptions ...CallOption) (Namespace, error) {
	request := &pb.CreateNamespaceRequest{Name: name, Options: options.proto()}
	response, err := call[pb.CreateNamespaceResponse](ctx, c, pb.NamespaceService_CreateNamespace_FullMethodName, request, collect(callOptions), once)
	namespace := toNamespace(response.GetNamespace())
	namespace.Warnings = response.GetWarnings()
	return namespace, err
}

// GetNamespace describes a namespace.
func (c *Client) GetNamespace(ctx context.Context, name string, options ...DescribeOption) (Namespace, error) {
	s := collect(options)
	request := &pb.GetNamespaceRequest{Name: name, IncludeStatistics: s.statistics}
	response, err := call[pb.GetNamespaceResponse](ctx, c, pb.NamespaceService_GetNamespace_FullMethodName, request, s, safe)
	return toNamespace(response.GetNamespace()), err
}

// ListNamespaces describes all, ordered by name: a round trip for each thousand.
func (c *Client) ListNamespaces(ctx context.Context, options ...DescribeOption) ([]Namespace, error) {
	s := collect(options)
	request := &pb.ListNamespacesRequest{IncludeStatistics: s.statistics}
	var all []Namespace
	for {
		response, err := call[pb.ListNamespacesResponse](ctx, c, pb.NamespaceService_ListNamespaces_FullMethodName, request, s, safe)
		if err != nil {
			return nil, err
		}
		for _, namespace := range response.Namespaces {
			all = append(all, toNamespace(namespace))
		}
		if request.PageToken = response.NextPageToken; request.PageToken == "" {
			return all, nil
		}
	}
}

// UpdateNamespace changes the options that are set, and those of [ToDefault]; the others
// stay. Entries that are in keep the deadline that they were promised.
func (c *Client) UpdateNamespace(ctx context.Context, name string, options NamespaceOptions, update ...UpdateOption) (Namespace, error) {
	s := collect(update)
	given := options.proto()
	request := &pb.UpdateNamespaceRequest{Namespace: &pb.Namespace{Name: name, Options: given},
		UpdateMask: updateMask(given, s.toDefault)}
	response, err := call[pb.UpdateNamespaceResponse](ctx, c, pb.NamespaceService_UpdateNamespace_FullMethodName, request, s, once)
	namespace := toNamespace(response.GetNamespace())
	namespace.Warnings = response.GetWarnings()
	return namespace, err
}

// DeleteNamespace deletes it with everything in it; its entries make no events.
func (c *Client) DeleteNamespace(ctx context.Context, name string, options ...CallOption) error {
	_, err := call[pb.DeleteNamespaceResponse](ctx, c, pb.NamespaceService_DeleteNamespace_FullMethodName, &pb.DeleteNamespaceRequest{Name: name}, collect(options), once)
	return err
}

// RotateNamespace kills the oldest bucket now, and returns how many entries died with it.
func (c *Client) RotateNamespace(ctx context.Context, name string, options ...CallOption) (entries uint64, err error) {
	response, err := call[pb.RotateNamespaceResponse](ctx, c, pb.NamespaceService_RotateNamespace_FullMethodName, &pb.RotateNamespaceRequest{Name: name}, collect(options), once)
	return response.GetEntries(), err
}

// DeathsOptions: which deaths GetDeaths counts, and how finely.
type DeathsOptions struct {
	// MaxBars: 1 to 1,000. 0: 60.
	MaxBars int
	// Within: only what dies within this time from now is in bars: 1 ms to 10 years. 0: all.
	Within time.Duration
}

// GetDeaths counts the live entries of a namespace by the time of their death. Costs the
// server O(live buckets), whatever the number of entries.
func (c *Client) GetDeaths(ctx context.Context, name string, deaths DeathsOptions, options ...CallOption) (*DeathsAhead, error) {
	request := &pb.GetDeathsRequest{Name: name, MaxBars: toUint32(deaths.MaxBars)}
	if deaths.Within != 0 {
		request.Within = durationpb.New(deaths.Within)
	}
	return call[pb.GetDeathsResponse](ctx, c, pb.NamespaceService_GetDeaths_FullMethodName, request, collect(options), safe)
}

// CreateGroup makes a consumer group of the client's namespace, which starts there; nil: FromNow.
// AlreadyExists (GroupExists); ResourceExhausted (MaxGroups); of a token also as [Client.Watch].
func (c *Client) CreateGroup(ctx context.Context, name string, options GroupOptions, start Position, callOptions ...CallOption) (Group, error) {
	request := &pb.CreateGroupRequest{Namespace: c.options.Namespace, Name: name, Options: options.proto(),
		Start: toPosition(start)}
	response, err := call[pb.CreateGroupResponse](ctx, c, pb.GroupService_CreateGroup_FullMethodName, request, collect(callOptions), once)
	return toGroup(response.GetGroup()), err
}

// GetGroup describes a group. NotFound (GroupNotFound) if there is none of that name.
func (c *Client) GetGroup(ctx context.Context, name string, options ...DescribeOption) (Group, error) {
	s := collect(options)
	request := &pb.GetGroupRequest{Namespace: c.options.Namespace, Name: name, IncludeStatistics: s.statistics}
	response, err := call[pb.GetGroupResponse](ctx, c, pb.GroupService_GetGroup_FullMethodName, request, s, safe)
	return toGroup(response.GetGroup()), err
}

// ListGroups describes all groups of the namespace, ordered by name.
func (c *Client) ListGroups(ctx context.Context, options ...DescribeOption) ([]Group, error) {
	s := collect(options)
	request := &pb.ListGroupsRequest{Namespace: c.options.Namespace, IncludeStatistics: s.statistics}
	var all []Group
	for {
		response, err := call[pb.ListGroupsResponse](ctx, c, pb.GroupService_ListGroups_FullMethodName, request, s, safe)
		if err != nil {
			return nil, err
		}
		for _, group := range response.Groups {
			all = append(all, toGroup(group))
		}
		if request.PageToken = response.NextPageToken; request.PageToken == "" {
			return all, nil
		}
	}
}

// UpdateGroup changes the options that are set, and those of [ToDefault]; the others stay.
func (c *Client) UpdateGroup(ctx context.Context, name string, options GroupOptions, update ...UpdateOption) (Group, error) {
	s := collect(update)
	given := options.proto()
	request := &pb.UpdateGroupRequest{Group: &pb.Group{Namespace: c.options.Namespace, Name: name, Options: given},
		UpdateMask: updateMask(given, s.toDefault)}
	response, err := call[pb.UpdateGroupResponse](ctx, c, pb.GroupService_UpdateGroup_FullMethodName, request, s, once)
	return toGroup(response.GetGroup()), err
}

// DeleteGroup deletes a group with all that it has not settled.
func (c *Client) DeleteGroup(ctx context.Context, name string, options ...CallOption) error {
	request := &pb.DeleteGroupRequest{Namespace: c.options.Namespace, Name: name}
	_, err := call[pb.DeleteGroupResponse](ctx, c, pb.GroupService_DeleteGroup_FullMethodName, request, collect(options), once)
	return err
}

// GetHotKeys names the keys of a namespace that are used most, at most 64; 0: 10. By a sample of
// one of 256 operations, of about the last minute.
func (c *Client) GetHotKeys(ctx context.Context, name string, maxKeys int, options ...CallOption) (*HotKeys, error) {
	request := &pb.GetHotKeysRequest{Name: name, MaxKeys: toUint32(maxKeys)}
	return call[pb.GetHotKeysResponse](ctx, c, pb.NamespaceService_GetHotKeys_FullMethodName, request, collect(options), safe)
}

// WhoAmI says who the caller is to the server, and what it may do.
func (c *Client) WhoAmI(ctx context.Context, options ...CallOption) (*Identity, error) {
	return call[pb.WhoAmIResponse](ctx, c, pb.ServerService_WhoAmI_FullMethodName, &pb.WhoAmIRequest{}, collect(options), safe)
}

// ListConnections lists the connections of clients to the server, the oldest first. With access
// rules it needs ADMIN on "*", as do CloseConnection and ListSlowCalls.
func (c *Client) ListConnections(ctx context.Context, options ...CallOption) ([]*Connection, error) {
	s := collect(options)
	request := &pb.ListConnectionsRequest{}
	var all []*Connection
	for {
		response, err := call[pb.ListConnectionsResponse](ctx, c, pb.ServerService_ListConnections_FullMethodName, request, s, safe)
		if err != nil {
			return nil, err
		}
		all = append(all, response.Connections...)
		if request.PageToken = response.NextPageToken; request.PageToken == "" {
			return all, nil
		}
	}
}

// CloseConnection closes the connection of this id, a Connection.Id: its calls end with
// Unavailable at the client, which may connect again. NotFound (ConnectionNotFound).
func (c *Client) CloseConnection(ctx context.Context, id uint64, options ...CallOption) error {
	request := &pb.CloseConnectionRequest{Id: id}
	_, err := call[pb.CloseConnectionResponse](ctx, c, pb.ServerService_CloseConnection_FullMethodName, request, collect(options), once)
	return err
}

// ListSlowCalls lists the last 256 calls that took longer than log.slow_call, the latest first.
func (c *Client) ListSlowCalls(ctx context.Context, options ...CallOption) (*SlowCalls, error) {
	request := &pb.ListSlowCallsRequest{}
	return call[pb.ListSlowCallsResponse](ctx, c, pb.ServerService_ListSlowCalls_FullMethodName, request, collect(options), safe)
}

// GetServer describes the server.
func (c *Client) GetServer(ctx context.Context, options ...CallOption) (*ServerInfo, error) {
	return call[pb.GetServerResponse](ctx, c, pb.ServerService_GetServer_FullMethodName, &pb.GetServerRequest{}, collect(options), safe)
}

// GetCluster describes the cluster as the node that calls go to now sees it, whether it owns or
// not. FailedPrecondition (NoCluster) of a server that is no node.
func (c *Client) GetCluster(ctx context.Context, options ...CallOption) (*ClusterInfo, error) {
	return call[pb.GetClusterResponse](ctx, c, pb.ServerService_GetCluster_FullMethodName, &pb.GetClusterRequest{}, collect(options), safe)
}

// HandOver makes the owner hand the ownership over to the standby of that name; empty: to the
// one that has replayed most. Returns which it is, once the ownership is released. Calls and
// streams then go on there by themselves. FailedPrecondition (NoCluster, or NoSuccessor: no
// standby of that name has caught up, and the owner goes on).
func (c *Client) HandOver(ctx context.Context, to string, options ...CallOption) (string, error) {
	response, err := call[pb.HandOverResponse](ctx, c, pb.ServerService_HandOver_FullMethodName, &pb.HandOverRequest{To: to}, collect(options), once)
	return response.GetTo(), err
}

// Health says whether the server serves, which needs no right: nil, or an error, which is
// Unavailable where the server says that it does not.
func (c *Client) Health(ctx context.Context, options ...CallOption) error {
	response, err := call[grpc_health_v1.HealthCheckResponse](ctx, c, grpc_health_v1.Health_Check_FullMethodName,
		&grpc_health_v1.HealthCheckRequest{}, collect(options), safe)
	if err == nil && response.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		return &Error{Code: codes.Unavailable, Message: "the server is " + response.Status.String()}
	}
	return err
}

// BackupJournal writes a backup of the server's journal, a tar archive, to w, and returns
// how many bytes it wrote. With an error it is not whole. The server ends who takes nothing
// for 30 s (its limits.response_timeout). FailedPrecondition (NoJournal); ResourceExhausted
// (MaxBackups). Has no deadline but the context's.
func (c *Client) BackupJournal(ctx context.Context, w io.Writer, options ...CallOption) (written int64, err error) {
	ctx, cancel := context.WithCancel(collect(options).outgoing(ctx))
	defer cancel()
	var trailer metadata.MD
	stream, err := pb.NewServerServiceClient(c.conn).BackupJournal(ctx, &pb.BackupJournalRequest{}, grpc.Trailer(&trailer))
	if err != nil {
		return 0, newError(err, nil)
	}
	for {
		piece, err := stream.Recv()
		if err == io.EOF {
			return written, nil
		}
		if err != nil {
			return written, c.failure(err, trailer)
		}
		n, err := w.Write(piece.Data)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
}

func (o *NamespaceOptions) proto() *pb.NamespaceOptions {
	return &pb.NamespaceOptions{
		Ttl: toDuration(o.TTL), NumBuckets: o.NumBuckets, MaxTtl: toDuration(o.MaxTTL), Sliding: o.Sliding,
		MaxEntries: o.MaxEntries, MaxBytes: o.MaxBytes, LimitPolicy: pb.LimitPolicy(o.LimitPolicy),
		MaxValueBytes: o.MaxValueBytes, EventRetention: toDuration(o.EventRetention),
		EventRetentionBytes: o.EventRetentionBytes, NumShards: o.NumShards,
		DeadLetterNamespace: o.DeadLetterNamespace, MaxOperationsPerSecond: o.MaxOperationsPerSecond,
		MaxBacklogBytes: o.MaxBacklogBytes, UnusedGroupTtl: toDuration(o.UnusedGroupTTL),
		Durability: pb.Durability(o.Durability), RestartPolicy: pb.RestartPolicy(o.RestartPolicy),
		MaxLife: toDuration(o.MaxLife), IdempotencyWindow: toDuration(o.IdempotencyWindow),
		IdempotencyMaxIds: o.IdempotencyMaxIDs, ChangeRetention: toDuration(o.ChangeRetention),
		ChangeRetentionBytes: o.ChangeRetentionBytes}
}

func toNamespaceOptions(o *pb.NamespaceOptions) NamespaceOptions {
	if o == nil {
		return NamespaceOptions{}
	}
	return NamespaceOptions{
		TTL: fromDuration(o.Ttl), NumBuckets: o.NumBuckets, MaxTTL: fromDuration(o.MaxTtl), Sliding: o.Sliding,
		MaxEntries: o.MaxEntries, MaxBytes: o.MaxBytes, LimitPolicy: LimitPolicy(o.LimitPolicy),
		MaxValueBytes: o.MaxValueBytes, EventRetention: fromDuration(o.EventRetention),
		EventRetentionBytes: o.EventRetentionBytes, NumShards: o.NumShards,
		DeadLetterNamespace: o.DeadLetterNamespace, MaxOperationsPerSecond: o.MaxOperationsPerSecond,
		MaxBacklogBytes: o.MaxBacklogBytes, UnusedGroupTTL: fromDuration(o.UnusedGroupTtl),
		Durability: Durability(o.Durability), RestartPolicy: RestartPolicy(o.RestartPolicy),
		MaxLife: fromDuration(o.MaxLife), IdempotencyWindow: fromDuration(o.IdempotencyWindow),
		IdempotencyMaxIDs: o.IdempotencyMaxIds, ChangeRetention: fromDuration(o.ChangeRetention),
		ChangeRetentionBytes: o.ChangeRetentionBytes}
}

func toNamespace(namespace *pb.Namespace) Namespace {
	return Namespace{Name: namespace.GetName(), Options: toNamespaceOptions(namespace.GetOptions()),
		BucketWidth: namespace.GetBucketWidth().AsDuration(), Statistics: namespace.GetStatistics()}
}

func (o *GroupOptions) proto() *pb.GroupOptions {
	options := &pb.GroupOptions{AckTimeout: toDuration(o.AckTimeout), MaxAttempts: o.MaxAttempts,
		MaxBacklogBytes: o.MaxBacklogBytes, UnusedTtl: toDuration(o.UnusedTTL),
		RetryDelay: toDuration(o.RetryDelay), RetryMultiplier: o.RetryMultiplier, MaxRetryDelay: toDuration(o.MaxRetryDelay),
		RetryJitterPercent: o.RetryJitterPercent, Paused: o.Paused, SingleActive: o.SingleActive}
	if o.KeyPrefix != nil {
		options.KeyPrefix = append([]byte{}, *o.KeyPrefix...) // Empty is set, too.
	}
	for _, delay := range o.RetryDelays {
		options.RetryDelays = append(options.RetryDelays, durationpb.New(delay))
	}
	return options
}

func toGroupOptions(o *pb.GroupOptions) GroupOptions {
	if o == nil {
		return GroupOptions{}
	}
	options := GroupOptions{AckTimeout: fromDuration(o.AckTimeout), MaxAttempts: o.MaxAttempts,
		MaxBacklogBytes: o.MaxBacklogBytes, UnusedTTL: fromDuration(o.UnusedTtl),
		RetryDelay: fromDuration(o.RetryDelay), RetryMultiplier: o.RetryMultiplier, MaxRetryDelay: fromDuration(o.MaxRetryDelay),
		RetryJitterPercent: o.RetryJitterPercent, Paused: o.Paused, SingleActive: o.SingleActive}
	if o.KeyPrefix != nil {
		options.KeyPrefix = new(string(o.KeyPrefix))
	}
	for _, delay := range o.RetryDelays {
		options.RetryDelays = append(options.RetryDelays, delay.AsDuration())
	}
	return options
}

func toGroup(group *pb.Group) Group {
	return Group{Name: group.GetName(), Namespace: group.GetNamespace(), Options: toGroupOptions(group.GetOptions()),
		Statistics: group.GetStatistics(), CreatedBy: group.GetCreatedBy()}
}

// updateMask names the options that are set, and those that take their defaults. Without the
// latter it needs none.
func updateMask(options proto.Message, toDefault []string) *fieldmaskpb.FieldMask {
	if len(toDefault) == 0 {
		return nil
	}
	names := map[string]bool{}
	for _, name := range toDefault {
		names["options."+name] = true
	}
	options.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		names["options."+string(field.Name())] = true
		return true
	})
	return &fieldmaskpb.FieldMask{Paths: slices.Sorted(maps.Keys(names))}
}

func toDuration(d *time.Duration) *durationpb.Duration {
	if d == nil {
		return nil
	}
	return durationpb.New(*d)
}

func fromDuration(d *durationpb.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	return new(d.AsDuration())
}
