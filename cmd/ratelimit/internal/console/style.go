package console

import "strings"

// A style is a mark before a text, and plain after it. The marks are characters of Unicode's
// private use area, which a [Writer] turns into the codes of a terminal, or leaves out where
// there is none. So a text has no terminal's codes before it is written.
const (
	plain  = '\ue000'
	bold   = '\ue001'
	faint  = '\ue002'
	red    = '\ue003'
	amber  = '\ue004'
	green  = '\ue005'
	turned = '\ue006'
)

// codes are the terminal's codes of the marks, in their order.
var codes = [...]string{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[7m"}

func isMark(r rune) bool { return r >= plain && r < plain+rune(len(codes)) }

func isColour(r rune) bool { return r == red || r == amber || r == green }

func styled(mark rune, text string) string {
	if text == "" {
		return ""
	}
	return string(mark) + text + string(plain)
}

// Head is the style of what stands above a table.
func Head(text string) string { return styled(bold, text) }

// Faint is the style of what matters less.
func Faint(text string) string { return styled(faint, text) }

// Bad is the style of what needs somebody's attention.
func Bad(text string) string { return styled(red, text) }

// Near is the style of what may soon need attention.
func Near(text string) string { return styled(amber, text) }

// Good is the style of what is as it should be.
func Good(text string) string { return styled(green, text) }

// Chosen is the style of the row that a key acts on. It holds within other styles.
func Chosen(text string) string { return string(turned) + text + string(plain) }

// unstyled returns a text without its marks.
func unstyled(text string) string {
	return strings.Map(func(r rune) rune {
		if isMark(r) {
			return -1
		}
		return r
	}, text)
}
