package sqlitestore

// maxLogPages is the length of the write-ahead log, in pages, from which on its content is moved to
// the file itself, so that the log begins again.
const maxLogPages = 1000

// trimLog keeps the log short. SQLite's own checkpoint does not keep others from writing meanwhile:
// with several busy processes it never reaches the end of the log, which grows for ever. The
// process that has just committed is most often the first to lock the file again. If it is not, or
// if another process reads, a later transaction tries again.
func (s *Store) trimLog() {
	if s.sinceTrim++; s.sinceTrim < 16 {
		return
	}
	s.sinceTrim = 0
	var busy, pages, moved int
	err := s.do.logLength.QueryRow().Scan(&busy, &pages, &moved)
	if err == nil && pages >= maxLogPages && moved < pages {
		s.do.checkpoint.Exec()
	}
}
