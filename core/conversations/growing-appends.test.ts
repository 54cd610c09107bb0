import fc from 'fast-check'
import { expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { isLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { growingTextsOf } from '../streams/growing-texts.ts'
import { append, stopAnswer } from '../test/bots.ts'
import { codeOf, testCores } from '../test/cores.ts'

const cores = testCores({ count: 2, started: false })

const texts = fc.constantFrom('', 'a', 'b', 'ab', ' ', '😀', '\n', 'a😀b')
const step = fc.record({
  core: fc.integer({ min: 0, max: 1 }),
  /** Where the text is appended: at the end, or that many code points from there. */
  from: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: -4, max: 2 })),
  text: texts,
  done: fc.boolean(),
  kind: fc.oneof(
    { weight: 8, arbitrary: fc.constant('append' as const) },
    fc.constantFrom('stop' as const, 'repeat' as const),
  ),
})

/** A message as the contract describes it. */
class Model {
  text = ''
  state: string | undefined

  append(offset: number, text: string, done: boolean): string {
    const points = [...this.text]
    if (offset > points.length) return 'ValidationFailed'
    const end = offset + [...text].length
    const isKnown = points.slice(offset, end).join('') === text
    const isNew = offset === points.length && (text !== '' || !done || this.state === undefined)
    if (!isNew && !isKnown) return 'IdempotencyConflict'
    if (!isNew && done && end !== points.length) return 'IdempotencyConflict'
    const grows = this.state === undefined || this.state === 'growing'
    if (!isNew && !(done && grows)) return this.answer(this.state === 'completed' || !done)
    if (!grows) return this.answer(false)
    const whole = isNew ? this.text + text : this.text
    if (done && whole.trim() === '') return 'ValidationFailed'
    this.text = whole
    this.state = done ? 'completed' : 'growing'
    return this.answer(false)
  }

  answer = (replayed: boolean) => JSON.stringify([[...this.text].length, this.state, replayed])
}

it('an end that repeats the first text conflicts on a core that has not seen the text since', async () => {
  const visitor = await cores.newVisitor()
  const [here, elsewhere] = cores.cores as [(typeof cores.cores)[0], (typeof cores.cores)[0]]
  await append(elsewhere, visitor, 'a', 0, '')
  await append(here, visitor, 'a', 0, ' ')
  const end = append(elsewhere, visitor, 'a', 0, '', { done: true })
  expect(await codeOf(end)).toBe('IdempotencyConflict')
})

it('a late repeat on a core that has not seen the later texts removes none of them', async () => {
  const visitor = await cores.newVisitor()
  await append(cores.core, visitor, 'a', 0, 'one ')
  await append(cores.other, visitor, 'a', 4, 'two ')
  await append(cores.other, visitor, 'a', 8, 'three')
  expect(await append(cores.core, visitor, 'a', 4, 'two ')).toMatchObject({ length: 13, replayed: true })
  expect((await cores.log(visitor.conversationId))[0]?.message?.body).toBe('one two three')
})

it('a core that receives a part, but not the part before it, reads the whole text', async () => {
  const { core } = cores
  const visitor = await cores.newVisitor()
  const { conversationId } = visitor
  const { in: growingIn } = growingTextsOf(core)
  const { messageId } = await append(core, visitor, 'a', 0, 'one ')
  const whole = { 'message.body': 'one two three', 'growth.length': 13 }
  await core.db.events.updateOne({ 'message.messageId': messageId }, { $set: whole })
  core.bus.emit('grewElsewhere', { conversationId, messageId, sequence: 1, offset: 8, text: 'three' })
  await until('the text', () => growingIn(conversationId)[0]?.length === 13)
  expect(growingIn(conversationId)).toMatchObject([{ messageId, text: 'one two three' }])
})

it('any sequence of appends, repeats, conflicts, gaps and stops on two cores has the results of the model', async () => {
  await forAllAsync(
    [fc.array(step, { minLength: 4, maxLength: 14 })],
    { numRuns: isLong ? 300 : 10 },
    async (steps) => {
      const visitor = await cores.newVisitor()
      const model = new Model()
      let messageId: string | undefined
      let last: [offset: number, text: string, done: boolean] = [0, '', false]
      for (const { core: index, from, text, done, kind } of steps) {
        const core = cores.cores[index]!
        if (kind === 'stop') {
          if (messageId === undefined) continue
          if (model.state === 'growing') model.state = 'stopped'
          expect(await stopAnswer(core, visitor, messageId)).toMatchObject({ messageId, state: model.state })
          continue
        }
        const call =
          kind === 'repeat' ? last : ([Math.max(0, [...model.text].length + from), text, done] as typeof last)
        last = call
        const expected = model.append(...call)
        const calling = append(core, visitor, 'a', call[0], call[1], { done: call[2] }).then((answer) => {
          messageId ??= answer.messageId
          expect(answer.messageId).toBe(messageId)
          throw new Error(JSON.stringify([answer.length, answer.state, answer.replayed]))
        })
        expect(await codeOf(calling), JSON.stringify({ call, text: model.text })).toBe(expected)
      }
      const log = await cores.log(visitor.conversationId)
      const ended = model.state !== undefined && model.state !== 'growing'
      const types = model.state === undefined ? [] : ['message.received', ...(ended ? ['message.completed'] : [])]
      expect(log.map(({ type }) => type)).toEqual(types)
      for (const { message } of log) expect(message?.body).toBe(model.text)
    },
  )
})
