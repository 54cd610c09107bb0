import type { EntryKind, ListEntry, SuppressionList } from '../../../contract/suppression-list.ts'
import { countOf } from '../time.ts'
import { Notice } from '../ui/page.tsx'
import { articleText, countOfKind, kinds, kindText } from './suppression-words.ts'

/** Maximum number of lines that a part of the preview shows. */
const maxShown = 5

interface ListPreviewProps {
  list: SuppressionList
  /** Entries that the service has rejected. */
  rejected: ListEntry[]
}

/** Shows what an import of the list would add, and what it would leave out. */
export function ListPreview({ list: { entries, invalid, repeated, hasHeader, ignored }, rejected }: ListPreviewProps) {
  const ofKind = (kind: EntryKind) => entries.filter((entry) => entry.kind === kind).length
  const found = kinds.flatMap(([kind]) => (ofKind(kind) > 0 ? countOfKind(ofKind(kind), kind) : []))
  const leftOut = [...invalid, ...rejected.map(({ line, value, kind }) => ({ line, text: value, kind }))].sort(
    (one, other) => one.line - other.line,
  )
  return (
    <>
      <p aria-live="polite">
        {found.length === 0 ? 'No entries found.' : `${found.join(', ')} found.`}
        {repeated > 0 && ` ${countOf(repeated, 'repetition', 'repetitions')} left out.`}
      </p>
      {entries.length > 0 && (
        <Lines
          rows={entries.map(({ line, kind, value }) => ({ line, text: value, mark: kindText(kind) }))}
          more={(count) => `and ${countOf(count, 'more entry', 'more entries')}`}
        />
      )}
      {ignored.length > 0 && (
        <Notice tone={hasHeader ? 'info' : 'warning'}>
          Not read: {ignored.slice(0, maxShown).join(', ')}
          {ignored.length > maxShown && ` and ${countOf(ignored.length - maxShown, 'more column', 'more columns')}`}.{' '}
          {!hasHeader &&
            'Name the columns in the first line to read more than the first, for example email,phone,subject.'}
        </Notice>
      )}
      {leftOut.length > 0 && (
        <>
          <Notice tone="warning">
            {hasHeader
              ? `${countOf(leftOut.length, 'entry does', 'entries do')} not fit the column and will not be imported.`
              : `${countOf(leftOut.length, 'line is', 'lines are')} neither an e-mail address, a phone number nor a visitor id, and will not be imported.`}
          </Notice>
          <Lines
            rows={leftOut.map(({ kind, ...row }) => ({ ...row, mark: kind && `not ${articleText(kind)}` }))}
            more={(count) => `and ${countOf(count, 'more line', 'more lines')}`}
          />
        </>
      )}
    </>
  )
}

interface LinesProps {
  rows: { line: number; text: string; mark?: string }[]
  more: (count: number) => string
}

function Lines({ rows, more }: LinesProps) {
  return (
    <ul class="list-lines">
      {rows.slice(0, maxShown).map(({ line, text, mark }, index) => (
        <li key={index}>
          <span class="hint">Line {line}</span>
          <bdi class="mono breakable">{text || '(empty)'}</bdi>
          {mark && <span class="tag">{mark}</span>}
        </li>
      ))}
      {rows.length > maxShown && <li class="hint">{more(rows.length - maxShown)}</li>}
    </ul>
  )
}
