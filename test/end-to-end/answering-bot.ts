import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type StartedProcess, startProcess } from '../support/processes.ts'
import { startStack } from '../support/stack.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'

interface Message {
  author: { kind: string }
  body: string
  growing?: boolean
}

/**
 * Runs the example bot beside two cores while visitors write. Kills the bot and the cores in turn, and causes a
 * failover of the database, if it can. Expects that each message has exactly one answer, and that the bot hands over.
 */
export async function expectOneAnswerEach(
  database: TestDatabase,
  {
    visitors: count,
    rounds,
    perRound,
    failOver,
  }: { visitors: number; rounds: number; perRound: number; failOver?: () => Promise<void> },
): Promise<void> {
  const stack = await startStack({ database, cores: 2, gateways: 1, env: { RATE_LIMIT_FACTOR: '1000' } })
  const cursorFile = join(stack.dataDir, 'bot.cursor')
  const env = {
    CORE_URLS: stack.cores.map(({ url }) => url).join(),
    SERVICE_TOKEN: await readFile(join(stack.dataDir, 'bot.token'), 'utf8'),
    CURSOR_FILE: cursorFile,
  }
  const startBot = () => startProcess({ entry: 'docs/examples/bot.ts', name: 'bot', env })
  let bot: StartedProcess = await startBot()
  async function killBot() {
    bot.kill('SIGKILL')
    await bot.exited
    bot = await startBot()
  }
  await until('the bot', () => existsSync(cursorFile))

  const visitors: Visitor[] = []
  while (visitors.length < count) visitors.push(await stack.newVisitor())
  const answersOf = async (visitor: Visitor) => {
    const history: Message[] = await visitor.history()
    return history.flatMap(({ author, body, growing }) => (author.kind === 'bot' && !growing ? body : []))
  }
  const answered = async () => (await Promise.all(visitors.map(answersOf))).flat().length
  const texts = visitors.map((): string[] => [])
  const sendRound = (round: number) =>
    Promise.all(
      visitors.map(async (visitor, index) => {
        for (let each = 0; each < perRound; each += 1) {
          const text = `text ${index}-${round}-${each}`
          texts[index]!.push(text)
          await visitor.sendUntilAccepted(text, text.replaceAll(' ', '-'))
        }
      }),
    )

  // One core is alive at any time. Each fault comes after an answer to a message of its round.
  const [one, other] = stack.cores
  const faults = [killBot, one!.killAndRestart, ...(failOver ? [failOver] : []), killBot, other!.killAndRestart]
  for (let round = 0; round < rounds - 1; round += 1) {
    const soFar = await answered()
    const sent = sendRound(round)
    await until('an answer', async () => (await answered()) > soFar)
    await faults[round % faults.length]!()
    await sent
  }
  // The feed gets events of a killed core with the next event of their conversation, or after 90 s.
  await sendRound(rounds - 1)
  for (let soFar = 0; soFar < count * rounds * perRound; ) {
    const before = soFar
    soFar = await until('another answer', async () => {
      const found = await answered()
      return found > before ? found : undefined
    })
  }
  for (const [index, visitor] of visitors.entries())
    expect(await answersOf(visitor)).toEqual(texts[index]!.map((text) => `You wrote: ${text}`))

  const [visitor] = visitors
  const { conversationId } = visitor!.session
  const { messaging } = stack.operator(1)
  const stateOf = async () => (await messaging.getConversation({ conversationId })).conversation?.bot
  await visitor!.sendUntilAccepted('A person, please', 'person')
  await until('the request', async () => (await stateOf())?.humanRequestedAt)
  await visitor!.sendUntilAccepted('Is anybody there?', 'unanswered')
  const { notes } = await messaging.listNotes({ conversationId })
  expect(notes.map(({ body }) => body)).toEqual(['The visitor asked for a person.'])
  const { events } = stack.operator(1)
  const placeIn = (cursor: string) => Number(cursor.split('.').at(-1))
  const unanswered = await until('the event of the message', async () => {
    let cursor = ''
    for (;;) {
      const page = await events.listEvents({ workspaceId: stack.demo.workspaceId, cursor, limit: 100 })
      const found = page.events.find(({ message }) => message?.message?.body === 'Is anybody there?')
      if (found || page.cursor === cursor) return found
      cursor = page.cursor
    }
  })
  const passed = async () => placeIn(await readFile(cursorFile, 'utf8')) >= placeIn(unanswered.cursor)
  await until('the bot to pass the message', passed)
  await messaging.resumeBot({ conversationId })
  await visitor!.sendUntilAccepted('Hello again', 'again')
  await until('the answer', async () => (await answersOf(visitor!)).includes('You wrote: Hello again'))
  expect((await answersOf(visitor!)).slice(rounds * perRound)).toEqual([
    'I am asking a colleague to help you.',
    'You wrote: Hello again',
  ])
}
