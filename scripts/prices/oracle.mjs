// Writes calls of many models and what @pydantic/genai-prices itself says that they cost. The tests
// of package price compare with it. After make prices, in the root of the repository:
//
//   npm pack @pydantic/genai-prices && tar xzf pydantic-genai-prices-*.tgz
//   node scripts/prices/oracle.mjs package > price/testdata/genai-prices.csv
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

const folder = resolve(process.argv[2])
const { calcPrice } = await import(folder + '/dist/index.js')
const { version } = JSON.parse(readFileSync(folder + '/package.json', 'utf8'))
const table = JSON.parse(readFileSync('price/table.json', 'utf8'))

let state = 42
const random = (below) => {
  state = (state * 1103515245 + 12345) % 2147483648
  return Math.floor((state / 2147483648) * below)
}

// usage returns the tokens of a call, with all parts that the model has prices for.
function usage(has, input) {
  const u = { input, cached: has('cached_input') ? random(input / 3) : 0, write: has('cache_write') ? random(input / 3) : 0 }
  u.hour = has('cache_write_hour') ? random(u.write) : 0
  u.audio = has('audio_input') && !has('image_input') ? random(input / 3) : 0
  u.cachedAudio = has('cached_audio') ? Math.min(random(u.audio), u.cached) : 0
  u.image = has('image_input') && !u.cached ? random(input / 3) : 0
  u.output = random(5000)
  u.reasoning = has('reasoning') ? random(u.output / 2) : 0
  u.audioOutput = has('audio_output') ? random(u.output / 2) : 0
  u.imageOutput = has('image_output') ? random(u.output / 2) : 0
  return u
}

const keys = {
  input: 'input_tokens', cached: 'cache_read_tokens', write: 'cache_write_tokens', hour: 'cache_write_1h_tokens',
  audio: 'input_audio_tokens', cachedAudio: 'cache_audio_read_tokens', image: 'input_image_tokens', output: 'output_tokens',
  reasoning: 'output_reasoning_tokens', audioOutput: 'output_audio_tokens', imageOutput: 'output_image_tokens',
}

console.log('# ' + version)
for (const provider of table.providers) {
  const makers = ['openai', 'anthropic', 'google', 'aws'].includes(provider.id)
  const step = makers ? 1 : Math.ceil(provider.models.length / (provider.id == 'openrouter' ? 60 : 8))
  for (let i = 0; i < provider.models.length; i += step) {
    const model = provider.models[i]
    const prices = [model.price].flat()
    // The table has a price for an hour in the cache for every Claude, and the highest price of a day.
    const claude = model.id.includes('claude') && provider.id != 'anthropic'
    if (provider.id == 'deepseek') continue
    const has = (part) => prices.some((p) => part in p) && !(claude && part == 'cache_write_hour')
    const at = ['2025-11-01', '2026-08-01', '2026-11-16', '2027-02-01'][random(4)]
    const u = usage(has, random(2) ? 1 + random(9000) : 100000 + random(400000))
    const theirs = Object.fromEntries(Object.entries(keys).filter(([k]) => u[k]).map(([k, name]) => [name, u[k]]))
    const name = [model.id, ...(model.match ?? [])][random(2) % ((model.match?.length ?? 0) + 1)].replaceAll(/[*]/g, '').replaceAll('#', '1')
    const result = calcPrice(theirs, name, { providerId: provider.id, timestamp: new Date(at + 'T12:00:00Z') })
    if (result) console.log([provider.id, name, at, ...Object.values(u), result.total_price].join())
  }
}
