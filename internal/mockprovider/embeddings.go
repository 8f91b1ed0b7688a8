package mockprovider

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
)

// embeddings is OpenAI's embeddings. It has no streams.
type embeddings struct{ single }

func (embeddings) read(c *Call) error {
	if c.fields["input"] == nil {
		return errors.New("input: a text, or an array, is required")
	}
	c.Prompt = c.fields.count("input")
	if inputs, ok := c.fields["input"].([]any); ok && len(inputs) > 0 {
		if _, number := inputs[0].(float64); !number {
			c.Answers = len(inputs)
		}
	}
	return nil
}

// defaultDimensions is how many numbers an embedding has by default.
const defaultDimensions = 8

func (f embeddings) whole(a *answer) object {
	data := make([]object, a.Answers)
	for i := range data {
		data[i] = object{"object": "embedding", "index": i, "embedding": f.vector(a, i)}
	}
	return object{
		"object": "list", "model": a.Model, "data": data,
		"usage": object{"prompt_tokens": a.usage.input, "total_tokens": a.usage.input},
	}
}

// vector returns the i-th embedding in the requested encoding.
func (embeddings) vector(a *answer, i int) any {
	numbers := make([]float32, cmp.Or(a.fields.number("dimensions"), defaultDimensions))
	for k := range numbers {
		numbers[k] = 1 / float32(i+k+1)
	}
	if a.fields.text("encoding_format") != "base64" {
		return numbers
	}
	var packed []byte
	for _, x := range numbers {
		packed = binary.LittleEndian.AppendUint32(packed, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(packed)
}

// moderations is OpenAI's, which are free.
type moderations struct{ embeddings }

func (moderations) whole(a *answer) object {
	return object{"id": a.id("modr-"), "model": a.Model, "results": []object{{"flagged": false}}}
}
