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
