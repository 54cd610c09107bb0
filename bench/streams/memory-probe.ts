// Preloaded into a server. A connection to its port forces a garbage collection and returns the bytes in use.
import { createServer } from 'node:net'
import { memoryUsage } from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

createServer((socket) => {
  collect()
  collect()
  const { heapUsed, external } = memoryUsage()
  socket.on('error', () => {})
  socket.end(String(heapUsed + external))
})
  .listen(Number(new URL(import.meta.url).searchParams.get('port')), '127.0.0.1')
  .unref()
