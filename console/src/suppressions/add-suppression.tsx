import { useState } from 'preact/hooks'
import type { EntryKind } from '../../../contract/suppression-list.ts'
import { useConsole } from '../console-context.ts'
import { ActionDialog } from '../ui/dialog.tsx'
import { SelectField, TextField } from '../ui/form.tsx'
import { kinds, kindText, toEntry } from './suppression-words.ts'

interface AddSuppressionProps {
  kind?: EntryKind
  value?: string
  onClose: () => void
  onAdded: (text: string) => void
}

const hints: Record<EntryKind, string> = {
  email: 'Upper and lower case make no difference.',
  phone: 'With country code, for example +43 660 1234567.',
  subject: 'The id by which your backend identifies visitors. Upper and lower case differ.',
}

/** Dialog that adds one person to the list. */
export function AddSuppression({
  kind: initialKind = 'email',
  value: initial = '',
  onClose,
  onAdded,
}: AddSuppressionProps) {
  const { api } = useConsole()
  const [kind, setKind] = useState(initialKind)
  const [value, setValue] = useState(initial)
  const [reason, setReason] = useState('')
  return (
    <ActionDialog
      title="Add to the list"
      action="Add entry"
      disabled={value.trim() === ''}
      onClose={onClose}
      onConfirm={async () => {
        const { added } = await api.workspaces.addSuppressions({
          entries: [toEntry(kind, value)],
          reason: reason.trim(),
        })
        onAdded(added > 0 ? 'Entry added.' : 'This entry was on the list already.')
      }}
    >
      <p>Deliveries of the person’s leads that have not begun end at once.</p>
      <SelectField label="Kind" value={kind} options={kinds} onChange={(next) => setKind(next as EntryKind)} />
      <TextField label={kindText(kind)} hint={hints[kind]} maxLength={400} value={value} onChange={setValue} />
      <TextField
        label="Reason"
        hint="For your records. Visitors never see it."
        maxLength={512}
        value={reason}
        onChange={setReason}
      />
    </ActionDialog>
  )
}
