package main

// split gives each client a quota of its own: its part of the model's by its weight, whether the
// others use theirs or not.
type split struct {
	queues
	part []int
}

func newSplit(l *load) rule {
	s := &split{queues: make(queues, len(l.clients))}
	for _, c := range l.clients {
		s.part = append(s.part, l.quota*c.weight/l.weights())
	}
	return s
}

func (s *split) next(u *usage) *call {
	for client, waiting := range s.queues {
		if len(waiting) > 0 && u.of[client]+waiting[0].cost <= s.part[client] {
			return s.pop(client)
		}
	}
	return nil
}
