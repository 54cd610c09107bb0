// Reads messages from sockets. Each message contains its send time, from which the reader computes
// the latency.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { clock, handleCommands } from '../commands.ts'

let waits: number[] = []
const server = createServer((socket) => {
  socket.setEncoding('latin1').on('data', (text: string) => {
    const now = clock()
    for (const at of text.trim().split('\n')) waits.push(now - Number(at))
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')

handleCommands(async (command: { do: 'port' | 'waits' }) => {
  if (command.do === 'port') return (server.address() as AddressInfo).port
  const result = waits
  waits = []
  return result
})
