package timecache

// What the conformance runner needs to compare with the protos.
var (
	NamespaceOptionsProto = (*NamespaceOptions).proto
	NamespaceOptionsFrom  = toNamespaceOptions
	GroupOptionsProto     = (*GroupOptions).proto
	GroupOptionsFrom      = toGroupOptions
)

// AwaitsAnswer says whether the timeout runs.
func (p *Pipeline) AwaitsAnswer() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ticking
}
