import { useMemo, useRef, useState } from 'preact/hooks'
import { readSuppressionList } from '../../../contract/suppression-list.ts'
import { backTo } from '../areas.ts'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { countOf } from '../time.ts'
import { TextField } from '../ui/form.tsx'
import { useAction } from '../ui/load.tsx'
import { Button, Card, FailureNotice, Notice, Page } from '../ui/page.tsx'
import { importEntries, importStart } from './import.ts'
import { ListPreview } from './list-preview.tsx'

const maxFileBytes = 20 * 1024 * 1024

/** The page that reads a text or CSV list of people who must not be contacted, and imports it. */
export function SuppressionImportView() {
  const { api, announcer } = useConsole()
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

  async function start() {
    const isComplete = await run(() => importEntries(api, list.entries, reason.trim(), progress, setProgress))
    if (isComplete) announcer.say('Import finished.')
  }

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
        actions={
          !isBegun && (
            <Button kind="small" onClick={() => file.current!.click()}>
              Choose file
            </Button>
          )
        }
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
          <Notice
            tone="info"
            action={
              !isBegun && (
                <Button kind="small" onClick={reset}>
                  Remove file
                </Button>
              )
            }
          >
            <bdi class="breakable">{fileName}</bdi>
          </Notice>
        )}
        <TextField
          label="Reason"
          hint="For your records, the same for all entries. Visitors never see it."
          maxLength={512}
          value={reason}
          onChange={setReason}
        />
      </Card>
      {text.trim() !== '' && (
        <Card title={isBegun ? 'Import' : 'Preview'}>
          <ListPreview list={list} rejected={progress.rejected} />
          {busy && <ImportProgress done={progress.done} total={total} />}
          {failure && (
            <Notice tone="warning">
              Stopped after {countOf(progress.done, 'entry', 'entries')}. Continue when the problem is solved; nothing
              is added twice.
            </Notice>
          )}
          <FailureNotice failure={failure} />
          {isDone ? (
            <>
              <Notice tone="success">
                {countOf(progress.added, 'entry', 'entries')} added.{' '}
                {countOf(progress.existing, 'entry was', 'entries were')} on the list already.
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
              <Button kind="primary" disabled={busy || total === 0} onClick={() => void start()}>
                {isBegun ? 'Continue' : `Import ${countOf(total, 'entry', 'entries')}`}
              </Button>
              {isBegun && !busy && <Button onClick={reset}>Start over</Button>}
            </div>
          )}
        </Card>
      )}
    </Page>
  )
}

function ImportProgress({ done, total }: { done: number; total: number }) {
  return (
    <div class="stack">
      <progress class="progress" max={total} value={done} aria-label="Import" />
      <span class="hint" key={done}>
        {countOf(done, 'entry', 'entries')} of {countOf(total, 'entry', 'entries')}
      </span>
    </div>
  )
}
