import { useMemo, useRef, useState } from 'preact/hooks'
import {
  type EntryKind,
  type ListEntry,
  readSuppressionList,
  type SuppressionList,
} from '../../../contract/suppression-list.ts'
import type { Api } from '../api.ts'
import { useConsole } from '../console-context.ts'
import { describeFailure } from '../failures.ts'
import { backTo, pathOf } from '../router.ts'
import { countOf } from '../time.ts'
import { ReasonField, TextField } from '../ui/form.tsx'
import { useAction } from '../ui/load.tsx'
import { Button, Card, FailureNotice, Notice, Page } from '../ui/page.tsx'
import { countOfKind, kinds, kindText, toEntry, wrongKinds } from './look-up.tsx'

const maxFileBytes = 20 * 1024 * 1024

/** The page that reads a text or CSV list of people who must not be contacted, and imports it. */
export function SuppressionImportView() {
  const { api } = useConsole()
  const [{ text, fileName }, setList] = useState<{ text: string; fileName?: string }>({ text: '' })
  const [fileProblem, setFileProblem] = useState<string>()
  const [reason, setReason] = useState('')
  const [progress, setProgress] = useState(importStart)
  const { busy, failure, run } = useAction()
  const file = useRef<HTMLInputElement>(null)
  const list = useMemo(() => readSuppressionList(text), [text])
  const total = list.entries.length
  const isBegun = busy || progress.done > 0 || failure !== undefined
  const isDone = total > 0 && progress.done === total

  function replace(next: { text: string; fileName?: string }) {
    setList(next)
    setFileProblem(undefined)
  }

  async function load(chosen: File) {
    if (chosen.size > maxFileBytes) return setFileProblem('The file has more than 20 MB. Split it.')
    replace({ text: await chosen.text(), fileName: chosen.name })
  }

  const start = () =>
    run(() => importEntries(api, list.entries, reason.trim(), progress, setProgress), 'Import finished.')

  function reset() {
    replace({ text: '' })
    setProgress(importStart)
  }

  return (
    <Page
      title="Import a list"
      back={backTo('suppressions')}
      lead="People on the imported list are added. Entries that are on the list already stay unchanged."
    >
      <Card
        title="List"
        actions={!isBegun && <Button kind="small" onClick={() => file.current!.click()} text="Choose file" />}
      >
        <input
          ref={file}
          type="file"
          hidden
          aria-label="File"
          accept=".csv,.txt,.tsv,text/csv,text/plain"
          onChange={(event) => {
            const [chosen] = event.currentTarget.files ?? []
            event.currentTarget.value = ''
            if (chosen) void load(chosen)
          }}
        />
        {fileName === undefined ? (
          <TextField
            label="Entries"
            error={fileProblem}
            hint="One per line: an e-mail address, a phone number with country code, or subject: and a visitor id of your site. CSV works too; if it has several columns, name them email, phone or subject in the first line."
            class="input mono list-input"
            rows={8}
            spellcheck={false}
            autocapitalize="off"
            readOnly={isBegun}
            placeholder={'ada@example.com\n+43 660 1234567'}
            value={text}
            onChange={(entered) => replace({ text: entered })}
          />
        ) : (
          <Notice tone="info" action={!isBegun && <Button kind="small" onClick={reset} text="Remove file" />}>
            <bdi class="breakable">{fileName}</bdi>
          </Notice>
        )}
        <ReasonField
          hint="For your records, the same for all entries. Visitors never see it."
          value={reason}
          onChange={setReason}
        />
      </Card>
      <Card title={isBegun ? 'Import' : 'Preview'}>
        {text.trim() === '' ? (
          <p class="hint">Enter people above, or choose a file.</p>
        ) : (
          <ListPreview list={list} rejected={progress.rejected} />
        )}
        {busy && (
          <div class="stack">
            <progress class="progress" max={total} value={progress.done} aria-label="Import" />
            <span class="hint" key={progress.done}>
              {countOf(progress.done, '# entry', '# entries')} of {countOf(total, '# entry', '# entries')}
            </span>
          </div>
        )}
        {failure && (
          <Notice tone="warning">
            Stopped after {countOf(progress.done, '# entry', '# entries')}. Continue when the problem is solved; nothing
            is added twice.
          </Notice>
        )}
        <FailureNotice failure={failure} />
        {isDone ? (
          <>
            <Notice tone="success">
              {countOf(progress.added, '# entry added.', '# entries added.')}{' '}
              {countOf(progress.existing, '# entry was on the list already.', '# entries were on the list already.')}
            </Notice>
            <div class="line">
              <a class="button primary" href={pathOf({ view: 'suppressions' })}>
                Show the list
              </a>
              <Button onClick={reset}>Import another list</Button>
            </div>
          </>
        ) : (
          <div class="line">
            <Button
              kind="primary"
              disabled={busy || total === 0}
              onClick={start}
              text={isBegun ? 'Continue' : countOf(total, 'Import # entry', 'Import # entries')}
            />
            {isBegun && !busy && <Button onClick={reset}>Start over</Button>}
          </div>
        )}
      </Card>
    </Page>
  )
}

const maxShown = 5

interface ListPreviewProps {
  list: SuppressionList
  rejected: ListEntry[]
}

function ListPreview({ list: { entries, invalid, repeated, hasHeader, ignored }, rejected }: ListPreviewProps) {
  const ofKind = (kind: EntryKind) => entries.filter((entry) => entry.kind === kind).length
  const found = kinds.flatMap(([kind]) => (ofKind(kind) > 0 ? countOfKind(ofKind(kind), kind) : []))
  const leftOut = [...invalid, ...rejected.map(({ line, value, kind }) => ({ line, text: value, kind }))].sort(
    (one, other) => one.line - other.line,
  )
  return (
    <>
      <p aria-live="polite">
        {found.length === 0 ? 'No entries found.' : `${found.join(', ')} found.`}
        {repeated > 0 && ` ${countOf(repeated, '# repetition left out.', '# repetitions left out.')}`}
      </p>
      {entries.length > 0 && (
        <Lines
          rows={entries.map(({ line, kind, value }) => ({ line, text: value, mark: kindText(kind) }))}
          more={(count) => countOf(count, 'and # more entry', 'and # more entries')}
        />
      )}
      {ignored.length > 0 && (
        <Notice tone={hasHeader ? 'info' : 'warning'}>
          Not read: {ignored.slice(0, maxShown).join(', ')}
          {ignored.length > maxShown &&
            ` ${countOf(ignored.length - maxShown, 'and # more column', 'and # more columns')}`}
          .{' '}
          {!hasHeader &&
            'Name the columns in the first line to read more than the first, for example email,phone,subject.'}
        </Notice>
      )}
      {leftOut.length > 0 && (
        <>
          <Notice tone="warning">
            {hasHeader
              ? countOf(
                  leftOut.length,
                  '# entry does not fit the column and will not be imported.',
                  '# entries do not fit the column and will not be imported.',
                )
              : countOf(
                  leftOut.length,
                  '# line is neither an e-mail address, a phone number nor a visitor id, and will not be imported.',
                  '# lines are neither an e-mail address, a phone number nor a visitor id, and will not be imported.',
                )}
          </Notice>
          <Lines
            rows={leftOut.map(({ kind, ...row }) => ({ ...row, mark: kind && wrongKinds[kind] }))}
            more={(count) => countOf(count, 'and # more line', 'and # more lines')}
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

const perCall = 1_000

interface ImportState {
  /** Number of processed entries: added, existing and rejected ones. */
  done: number
  added: number
  existing: number
  rejected: ListEntry[]
}

const importStart: ImportState = { done: 0, added: 0, existing: 0, rejected: [] }

/**
 * Adds the entries from index `state.done` on, in calls of at most 1,000. Reports the state after
 * each call. If the service rejects entries of a call, repeats the call without them. After an
 * error, the caller can continue with the last reported state. If the failed call was executed, its
 * entries then count as existing.
 */
async function importEntries(
  { workspaces }: Pick<Api, 'workspaces'>,
  entries: ListEntry[],
  reason: string,
  state: ImportState,
  report: (state: ImportState) => void,
): Promise<void> {
  for (let current = state; current.done < entries.length; ) {
    const part = entries.slice(current.done, current.done + perCall)
    const { added, existing, rejected } = await addPart(workspaces, part, reason)
    current = {
      done: current.done + part.length,
      added: current.added + added,
      existing: current.existing + existing,
      rejected: [...current.rejected, ...rejected],
    }
    report(current)
  }
}

async function addPart(workspaces: Api['workspaces'], part: ListEntry[], reason: string) {
  const add = async (entries: ListEntry[]) =>
    entries.length === 0
      ? { added: 0, existing: 0 }
      : workspaces.addSuppressions({ entries: entries.map(({ kind, value }) => toEntry(kind, value)), reason })
  try {
    return { ...(await add(part)), rejected: [] }
  } catch (error) {
    const rejected = rejectedIn(error, part)
    if (rejected.length === 0) throw error
    return { ...(await add(part.filter((entry) => !rejected.includes(entry)))), rejected }
  }
}

/** Returns the entries that a `ValidationFailed` names. */
const rejectedIn = (error: unknown, part: ListEntry[]): ListEntry[] =>
  describeFailure(error).issues.flatMap(({ path }) => part[Number(/^\/entries\/(\d+)/.exec(path)?.[1])] ?? [])
