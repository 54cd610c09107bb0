import { useState } from 'preact/hooks'
import type { EntryKind } from '../../../contract/suppression-list.ts'
import { useConsole } from '../console-context.ts'
import { SelectField, TextField } from '../ui/form.tsx'
import { useLoad } from '../ui/load.tsx'
import { Button, FailureNotice, Notice, When } from '../ui/page.tsx'
import { AddSuppression } from './add-suppression.tsx'
import { RemoveEntry } from './remove-entry.tsx'
import { kinds, kindText, toEntry } from './suppression-words.ts'

interface LookUpProps {
  /** Number of changes of the suppression list. Each change reloads the shown result. */
  changes: number
  onChanged: (text: string) => void
}

/** Finds out whether one person is on the list. */
export function LookUp({ changes, onChanged }: LookUpProps) {
  const { api } = useConsole()
  const [kind, setKind] = useState<EntryKind>('email')
  const [value, setValue] = useState('')
  const [person, setPerson] = useState<{ kind: EntryKind; value: string }>()
  const [isAdding, setAdding] = useState(false)
  const { failure, ...found } = useLoad(async () => {
    if (!person) return undefined
    const entry = toEntry(person.kind, person.value)
    return { ...person, suppression: (await api.workspaces.listSuppressions({ entry })).suppressions[0] }
  }, [person, changes])
  const result = found.value

  return (
    <>
      <form
        class="bar look-up"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          if (value.trim() !== '') setPerson({ kind, value })
        }}
      >
        <SelectField label="Kind" value={kind} options={kinds} onChange={(next) => setKind(next as EntryKind)} />
        <TextField label={kindText(kind)} maxLength={400} value={value} onChange={setValue} />
        <Button type="submit" disabled={value.trim() === ''}>
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
