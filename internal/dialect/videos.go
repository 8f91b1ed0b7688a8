package dialect

import "encoding/json"

// aboutVideo is for a request that changes a stored video: a remix, an edit, or an extension. It has no model, and only
// an extension has a length: what it lacks is that of the stored video. One with a video in its form is not read: nothing
// says how long that is.
var aboutVideo = &about{
	at: func(path string, fields []byte) ([]string, bool) {
		if before, ok := cutFolded(path, "/remix"); ok {
			return []string{before}, true
		}
		for _, end := range []string{"/edits", extensionEnd} {
			if before, ok := cutFolded(path, end); ok {
				body := objectOf(fields)
				video, _ := body["video"].(map[string]any)
				id, _ := video["id"].(string)
				if inForm, ok := body["video[id]"].(string); ok {
					id = inForm
				}
				if !storedID.MatchString(id) || body["video"] != nil && body["video[id]"] != nil {
					return nil, true
				}
				return []string{before + "/" + id}, true
			}
		}
		return nil, false
	},
	with: func(s *Stored) (q Request, err error) {
		if _, ok := cutFolded(s.path, extensionEnd); !ok {
			return s.read(s.texts[0])
		}
		var video struct {
			Model   string `json:"model"`
			Size    string `json:"size"`
			Seconds any    `json:"seconds"`
		}
		if json.Unmarshal(s.texts[0], &video) != nil {
			return q, errStored
		}
		if own := objectOf(s.fields)["seconds"]; own != nil {
			video.Seconds = own
		}
		return s.read(encoded(object{"model": video.Model, "size": video.Size, "seconds": video.Seconds}))
	},
}

const extensionEnd = "/extensions"
