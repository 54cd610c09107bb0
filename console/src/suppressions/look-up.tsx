import { useEffect, useState } from 'preact/hooks'
import type { Suppression } from '#proto/workspace/v1/workspace_pb.js'
import type { EntryKind } from '../../../contract/suppression-list.ts'
import { useConsole } from '../console-context.ts'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { SelectField, TextField } from '../ui/field.tsx'
import { FailureNotice, Notice } from '../ui/notice.tsx'
import { When } from '../ui/when.tsx'
import { AddSuppression } from './add-suppression.tsx'
import { RemoveEntry } from './remove-entry.tsx'
import { kinds, toEntry } from './suppression-words.ts'

interface LookUpProps {
  /** Number of changes of the suppression list. Each change reloads the shown result. */
  changes: number
  onChanged: (text: string) => void
}

interface Result {
  kind: EntryKind
  value: string
  suppression: Suppression | undefined
}

/** Finds out whether one person is on the list. */
export function LookUp({ changes, onChanged }: LookUpProps) {
  const { api } = useConsole()
  const [kind, setKind] = useState<EntryKind>('email')
  const [value, setValue] = useState('')
  const [result, setResult] = useState<Result>()
  const [isAdding, setAdding] = useState(false)
  const { busy, failure, run } = useAction()

  async function lookUp(person: Pick<Result, 'kind' | 'value'>) {
    setResult(undefined)
    await run(async () => {
      const { suppressions } = await api.workspaces.listSuppressions({ entry: toEntry(person.kind, person.value) })
      setResult({ ...person, suppression: suppressions[0] })
    })
  }

  useEffect(() => {
    if (result) void lookUp(result)
  }, [changes])

  return (
    <>
      <form
        class="bar look-up"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          if (value.trim() !== '') void lookUp({ kind, value })
        }}
      >
        <SelectField label="Kind" value={kind} options={kinds} onChange={(next) => setKind(next as EntryKind)} />
        <TextField
          label={kinds.find(([known]) => known === kind)![1]}
          maxLength={400}
          value={value}
          onChange={setValue}
        />
        <Button type="submit" disabled={busy || value.trim() === ''}>
          Look up
        </Button>
      </form>
      <FailureNotice failure={failure} />
      <div role="status">
        {result?.suppression && (
          <Notice tone="warning" action={<RemoveEntry suppression={result.suppression} onChanged={onChanged} />}>
            <bdi class="breakable">{result.value}</bdi> is on the list since{' '}
            <When at={result.suppression.addedAt} full />, added by {result.suppression.addedBy}
            {result.suppression.reason && `: ${result.suppression.reason}`}
          </Notice>
        )}
        {result && !result.suppression && (
          <Notice
            tone="info"
            action={
              <Button kind="small" onClick={() => setAdding(true)}>
                Add to list
              </Button>
            }
          >
            <bdi class="breakable">{result.value}</bdi> is not on the list.
          </Notice>
        )}
      </div>
      {isAdding && result && (
        <AddSuppression kind={result.kind} value={result.value} onClose={() => setAdding(false)} onAdded={onChanged} />
      )}
    </>
  )
}
