import { expect, it, vi } from 'vitest'
import { createEmitter } from './events.ts'

it('calls the other handlers though one throws, and passes its error on', () => {
  const onHandlerError = vi.fn()
  const emitter = createEmitter<{ tick: number }>(onHandlerError)
  const heard: number[] = []
  emitter.on('tick', () => {
    throw new Error('a fault of the page')
  })
  emitter.on('tick', (value) => heard.push(value))
  emitter.emit('tick', 1)
  expect(heard).toEqual([1])
  expect(onHandlerError).toHaveBeenCalledWith(expect.objectContaining({ message: 'a fault of the page' }))
})

it('stops calling after the unsubscribe, even from within a handler', () => {
  const emitter = createEmitter<{ tick: number }>()
  const heard: number[] = []
  const unsubscribe = emitter.on('tick', (value) => {
    heard.push(value)
    unsubscribe()
  })
  emitter.emit('tick', 1)
  emitter.emit('tick', 2)
  expect(heard).toEqual([1])
})
