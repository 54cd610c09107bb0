import { expect, it, vi } from 'vitest'
import { createEmitter } from './events.ts'

it('if a handler throws, the emitter calls the other handlers and reports the error', () => {
  const onHandlerError = vi.fn()
  const emitter = createEmitter(onHandlerError)
  const heard: number[] = []
  emitter.on('unread.changed', () => {
    throw new Error('a fault of the page')
  })
  emitter.on('unread.changed', ({ count }) => heard.push(count))
  emitter.emit('unread.changed', { count: 1 })
  expect(heard).toEqual([1])
  expect(onHandlerError).toHaveBeenCalledWith(expect.objectContaining({ message: 'a fault of the page' }))
})

it('the emitter does not call a handler again after the handler has unsubscribed itself during a call', () => {
  const emitter = createEmitter()
  const heard: number[] = []
  const unsubscribe = emitter.on('unread.changed', ({ count }) => {
    heard.push(count)
    unsubscribe()
  })
  emitter.emit('unread.changed', { count: 1 })
  emitter.emit('unread.changed', { count: 2 })
  expect(heard).toEqual([1])
})

it('a handler of `once` is called once, and not after it was unsubscribed', () => {
  const emitter = createEmitter()
  const heard: number[] = []
  emitter.once('unread.changed', ({ count }) => heard.push(count))
  emitter.once('unread.changed', ({ count }) => heard.push(-count))()
  for (const count of [1, 2]) emitter.emit('unread.changed', { count })
  expect(heard).toEqual([1])
})

it('a failure that is not recoverable goes to the console if, and only if, no handler listens', () => {
  const log = vi.spyOn(console, 'error').mockReturnValue()
  const emitter = createEmitter()
  emitter.emit('error', { code: 'network_error', recoverable: true })
  emitter.emit('error', { code: 'identity_mismatch', recoverable: false })
  emitter.on('error', () => {})
  emitter.emit('error', { code: 'identity_mismatch', recoverable: false })
  expect(log.mock.calls).toEqual([['Chat: identity_mismatch']])
})
