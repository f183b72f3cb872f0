"""Generated from proto/timecache."""
