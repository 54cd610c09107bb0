const contactFields = [
  { name: 'name', label: 'Name', type: 'text', required: false },
  { name: 'email', label: 'E-mail', type: 'email', required: true },
]

/** The fields of a new form. The widget translates these labels into the language of the visitor. */
export const usualFields = {
  preChat: contactFields,
  offline: [...contactFields, { name: 'message', label: 'Message', type: 'textarea', required: true }],
}
