// Makes the calls that are asked for on stdin, one JSON object a line, and says on stdout
// what the SDK has shown of each.
import { createInterface } from "node:readline";

export const question = "What is the weather in Paris?";
export const brief = "You are brief.";
export const weather = {
  name: "get_weather",
  description: "The weather in a city",
  schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
export const wantsTool = { "X-Mock": "tool=get_weather" };

// serve makes calls by their names. A call is given what is asked, and a function that
// shows a result.
export async function serve(calls) {
  for await (const line of createInterface({ input: process.stdin })) {
    const ask = JSON.parse(line);
    console.log(JSON.stringify(await answer(calls[ask.call], ask)));
  }
}

async function answer(call, ask) {
  const shown = [];
  try {
    await call(ask, (result) => shown.push(JSON.stringify(result)));
    return { shown };
  } catch (error) {
    return { shown, error: fault(error) };
  }
}

const fault = (error) => ({
  type: error.constructor.name,
  status: error.status ?? 0,
  message: error.message,
  headers: Object.fromEntries(error.headers ?? []),
});

// each shows what a stream brings.
export async function each(stream, show) {
  for await (const piece of await stream) show(piece);
}

// some shows so many pieces of a stream, and leaves it open.
export async function some(n, stream, show) {
  const pieces = (await stream)[Symbol.asyncIterator]();
  for (; n > 0; n--) show((await pieces.next()).value);
}
