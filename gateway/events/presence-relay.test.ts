import { expect, it } from 'vitest'
import { Gateway } from '../gateway.ts'
import { presenceOf } from './presence-relay.ts'

it('cores hear of a gateway only while it has streams, changes or reports', () => {
  const relay = presenceOf(new Gateway({} as Gateway))
  const counts: number[] = []
  const link = { send: ({ value }: { value: object }) => void counts.push(Object.values(value).flat().length) }
  const flushed = () => {
    relay.flush([link as never])
    return counts.splice(0)
  }
  expect(flushed()).toEqual([])
  const stream = {}
  relay.opened(stream, { conversationId: 'cnv_1', workspaceId: 'ws_1' })
  expect([...flushed(), ...flushed()]).toEqual([1, 0])
  relay.ended(stream)
  expect([...flushed(), ...flushed()]).toEqual([1])
  relay.report({ conversationId: 'cnv_1', workspaceId: 'ws_1', tab: 't' })
  expect([...flushed(), ...flushed()]).toEqual([1])
})
