package timecache

import (
	"testing"
	"time"
)

func TestAServerIsFarWhereEvenTheShortestAnswerTookLong(t *testing.T) {
	s := new(sharedStream)
	for _, shortest := range []time.Duration{farAnswer, time.Microsecond, farAnswer} {
		for range sharedAnswers - 1 {
			s.countAnswer(time.Hour)
		}
		s.countAnswer(shortest)
		if s.isFar != (shortest == farAnswer) {
			t.Errorf("far is %v after %v", s.isFar, shortest)
		}
	}
}
