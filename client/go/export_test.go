package timecache

// What the conformance runner needs to compare with the protos.
var (
	NamespaceOptionsProto = (*NamespaceOptions).proto
	NamespaceOptionsFrom  = toNamespaceOptions
	GroupOptionsProto     = (*GroupOptions).proto
	GroupOptionsFrom      = toGroupOptions
)
