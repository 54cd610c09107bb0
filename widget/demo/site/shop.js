const count = document.querySelector('.count')
const buttons = document.querySelectorAll('.add')

for (const button of buttons) {
  button.addEventListener('click', () => {
    count.textContent = String(Number(count.textContent) + 1)
    button.textContent = 'Added'
    setTimeout(() => {
      button.textContent = 'Add to basket'
    }, 1600)
  })
}
