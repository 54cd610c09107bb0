import { editList, Form, keyed, TextField, useForm } from '../ui/form.tsx'
import { Button, Card, IconButton } from '../ui/page.tsx'
import { repliesOf } from './installation-words.ts'
import { type InstallationPart, useUpdate } from './update.ts'

const wrongTag = 'Enter a language tag, for example de or de-AT.'

export function TranslationsCard(part: InstallationPart) {
  const stored = part.installation.appearance?.translations ?? {}
  const { update } = useUpdate(part)
  const form = useForm({
    start: () => ({
      rows: Object.entries(stored).map(([tag, { title = '', greeting = '', openingReplies }]) =>
        keyed({ tag, title, greeting, replies: openingReplies?.texts.join('\n') ?? '' }),
      ),
    }),
    problemsOf: ({ rows }) =>
      Object.fromEntries(
        rows.map(({ key, tag, title, greeting, replies }) => {
          const isDouble = rows.some((other) => other.key !== key && isSameTag(other.tag, tag))
          const isEmpty = `${title}${greeting}${replies}`.trim() === ''
          const texts = isEmpty ? 'Enter a text, or remove this language.' : undefined
          return [key, !isLocale(tag.trim()) ? wrongTag : isDouble ? 'This language is there twice.' : texts]
        }),
      ),
    save({ rows }) {
      const kept = rows.map(({ tag, title, greeting, replies }) => [
        Intl.getCanonicalLocales(tag.trim())[0]!,
        { title: title.trim(), greeting: greeting.trim(), openingReplies: repliesOf(replies) },
      ])
      // The service removes a language if its texts are empty.
      const removed = Object.keys(stored).map((tag) => [tag, {}])
      return update({ appearance: { translations: Object.fromEntries([...removed, ...kept]) } }, 'Translations saved.')
    },
  })
  const { rows } = form.draft
  const edit = editList(rows, (next) => form.set({ rows: next }))

  return (
    <Card title="Translations">
      <Form form={form} label="Translations">
        <p class="hint">
          Visitors see the texts of their language, for example of de-AT, else of de, else those under Appearance.
        </p>
        <ul class="stack">
          {rows.map((row, index) => {
            const field = (name: 'tag' | 'title' | 'greeting' | 'replies') => ({
              value: row[name],
              onChange: (value: string) => edit.change(index, { [name]: value }),
            })
            const problem = form.problems[row.key]
            return (
              <li key={row.key} class="translation">
                <TextField
                  label="Language"
                  class="input mono"
                  maxLength={35}
                  placeholder="de"
                  error={form.isChecked || (problem === wrongTag && row.tag !== '') ? problem : undefined}
                  {...field('tag')}
                />
                <TextField label="Title" maxLength={128} {...field('title')} />
                <TextField label="Greeting" rows={2} maxLength={1024} {...field('greeting')} />
                <TextField label="Opening replies" rows={2} {...field('replies')} />
                <IconButton
                  icon="trash"
                  label={`Remove ${row.tag || 'this language'}`}
                  onClick={() => edit.remove(index)}
                />
              </li>
            )
          })}
        </ul>
        <div class="line">
          <Button
            kind="small"
            disabled={rows.length >= 50}
            icon="plus"
            onClick={() => edit.add(keyed({ tag: '', title: '', greeting: '', replies: '' }))}
            text="Add language"
          />
        </div>
      </Form>
    </Card>
  )
}

const isSameTag = (one: string, other: string) => one.trim().toLowerCase() === other.trim().toLowerCase()

function isLocale(tag: string) {
  try {
    return Intl.getCanonicalLocales(tag).length > 0
  } catch {
    return false
  }
}
