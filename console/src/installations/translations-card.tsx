import { useState } from 'preact/hooks'
import { Button, IconButton } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'
import { FailureNotice } from '../ui/notice.tsx'
import { Card } from '../ui/page.tsx'
import { useUnsaved } from '../ui/unsaved.tsx'
import { type InstallationPart, useUpdate } from './update.ts'

interface Row {
  key: number
  tag: string
  title: string
  greeting: string
}

let nextKey = 0

/** Card that edits title and greeting in other languages. */
export function TranslationsCard(part: InstallationPart) {
  const saved = part.installation.appearance?.translations ?? {}
  const { failure, save } = useUpdate(part)
  const [rows, setRows] = useState<Row[]>(() =>
    Object.entries(saved).map(([tag, { title = '', greeting = '' }]) => ({ key: nextKey++, tag, title, greeting })),
  )
  const { form, onSaved } = useUnsaved(rows)
  const tags = rows.map(({ tag }) => tag.trim().toLowerCase())
  const [isChecked, setChecked] = useState(false)
  const problemOf = ({ tag, title, greeting }: Row) => {
    if (isChecked && title.trim() === '' && greeting.trim() === '')
      return 'Enter a title or a greeting, or remove this language.'
    if (tag.trim() === '') return isChecked ? 'Enter a language tag, for example de or de-AT.' : undefined
    if (!isLocale(tag.trim())) return 'Enter a language tag, for example de or de-AT.'
    return tags.filter((one) => one === tag.trim().toLowerCase()).length > 1
      ? 'This language is there twice.'
      : undefined
  }
  const isComplete = ({ tag, title, greeting }: Row) => tag.trim() !== '' && `${title}${greeting}`.trim() !== ''

  async function submit(event: Event) {
    event.preventDefault()
    setChecked(true)
    if (!rows.every((row) => isComplete(row) && problemOf(row) === undefined)) return
    const kept = rows.map(({ tag, title, greeting }) => [
      Intl.getCanonicalLocales(tag.trim())[0]!,
      { title: title.trim() || undefined, greeting: greeting.trim() || undefined },
    ])
    // The service removes a language if its texts are empty. Send empty texts for saved languages
    // that the form no longer contains.
    const removed = Object.keys(saved).map((tag) => [tag, {}])
    const translations = Object.fromEntries([...removed, ...kept])
    if (await save({ appearance: { translations } }, 'Translations saved.')) onSaved()
  }

  return (
    <Card title="Translations">
      <form class="stack" ref={form} onSubmit={submit} noValidate aria-label="Translations">
        <p class="hint">
          Visitors see the title and greeting of their language, for example of de-AT, else of de, else those under
          Appearance.
        </p>
        <ul class="stack">
          {rows.map((row, index) => {
            const set = (change: Partial<Row>) => setRows(rows.with(index, { ...row, ...change }))
            return (
              <li key={row.key} class="translation">
                <TextField
                  label="Language"
                  class="input mono"
                  maxLength={35}
                  placeholder="de"
                  error={problemOf(row)}
                  value={row.tag}
                  onChange={(tag) => set({ tag })}
                />
                <TextField label="Title" maxLength={128} value={row.title} onChange={(title) => set({ title })} />
                <TextField
                  label="Greeting"
                  rows={2}
                  maxLength={1024}
                  value={row.greeting}
                  onChange={(greeting) => set({ greeting })}
                />
                <IconButton
                  icon="trash"
                  label={`Remove ${row.tag || 'language'}`}
                  onClick={() => setRows(rows.toSpliced(index, 1))}
                />
              </li>
            )
          })}
        </ul>
        <FailureNotice failure={failure} />
        <div class="line">
          <Button
            kind="small"
            disabled={rows.length >= 50}
            onClick={() => setRows([...rows, { key: nextKey++, tag: '', title: '', greeting: '' }])}
          >
            <Icon name="plus" />
            Add language
          </Button>
        </div>
      </form>
    </Card>
  )
}

function isLocale(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length === 1
  } catch {
    return false
  }
}
