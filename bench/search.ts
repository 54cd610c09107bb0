import { operatorOf } from '../test/support/operator.ts'
import { fill, newConversations, perConversation } from './filling.ts'
import { amount, type Column, compare, type Part, type Step, tablesOf } from './measure.ts'
import { inParts, type LoadedService } from './service.ts'
import { quantile } from './table.ts'

const wordsPerMessage = 12
const vocabulary = 50_000
const queriesPerRound = 100
/** Returns the word with this rank in the order of frequency. */
const wordAt = (rank: number) => `${'bdfgklmnprstvz'[rank % 14]}${'aeiou'[rank % 5]}${rank.toString(36)}`
const someOf = (first: number, count: number) => wordAt(first + Math.floor(Math.random() * count))
/** Returns a random word, with the frequencies of a natural language (Zipf’s law). */
const someWord = () => wordAt(Math.min(vocabulary, Math.floor(Math.exp(Math.random() * Math.log(vocabulary)))))

const queries: [name: string, query: () => string][] = [
  ['a rare word', () => `${someOf(30_000, 20_000)} `],
  ['a word of medium frequency', () => `${someOf(200, 2_000)} `],
  ['a frequent word', () => `${someOf(1, 10)} `],
  ['the first two letters of a word', () => someWord().slice(0, 2)],
  ['two words', () => `${someWord()} ${someWord()}`],
  ['two frequent words', () => `${someOf(1, 10)} ${someOf(20, 30)}`],
  ['a word that does not occur', () => `nothing${Math.random().toString(36).slice(2)}`],
]
const columns: Column[] = [
  ['median', 'p50', 'ms', 1],
  ['95th percentile', 'p95', 'ms', 1],
  ['results on the first page', 'found', '', 1],
]

export const part: Part = async (options) => {
  const messages = options.quick ? 20_000 : 1_000_000
  const conversations = newConversations('search', messages / perConversation)
  const began = Date.now()
  const filled = {
    ...inParts,
    name: 'Service',
    about: `${queriesPerRound} searches a round. A message has ${wordsPerMessage} words`,
    async start(given: object): Promise<LoadedService> {
      const running = await inParts.start(given)
      const at = (index: number) => new Date(began - (conversations.length - index) * 1000)
      const body = () => Array.from({ length: wordsPerMessage }, someWord).join(' ')
      await fill(running.service.access, { conversations, areNew: true, at, body })
      return running
    },
  }
  const steps = queries.map(
    ([name, next]): Step<LoadedService> => ({
      ...{ name, title: `Searches among ${amount(messages)} messages`, columns, row: () => name },
      async run({ service: { access } }) {
        const { coreUrl, serviceToken, workspaceId } = access
        const { messaging } = operatorOf(coreUrl, serviceToken)
        const times: number[] = []
        let found = 0
        for (let count = 0; count < queriesPerRound; count += 1) {
          const query = next()
          const at = performance.now()
          found += (await messaging.searchConversations({ workspaceId, query })).results.length
          times.push(performance.now() - at)
        }
        return { p50: quantile(times, 0.5), p95: quantile(times, 0.95), found: found / queriesPerRound }
      },
    }),
  )
  return tablesOf(await compare({ contenders: [filled], steps, options }))
}
