package sqlitestore

// longLog is how long the write-ahead log may become, in pages. What is in it is
// moved to the file itself then, and it begins anew.
const longLog = 1000

// trim keeps the log short. SQLite would do it too, but not keep others from
// writing meanwhile: where several processes are busy, it never comes to the end
// of the log, which grows for ever. Who has just committed is most often the
// first to lock the file again. If it is not, or if somebody reads, another
// transaction tries again.
func (s *Store) trim() {
	if s.untrimmed++; s.untrimmed < 16 {
		return
	}
	s.untrimmed = 0
	var busy, pages, moved int
	err := s.do.logLength.QueryRow().Scan(&busy, &pages, &moved)
	if err == nil && pages >= longLog && moved < pages {
		s.do.checkpoint.Exec()
	}
}
