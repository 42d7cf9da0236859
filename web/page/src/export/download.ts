export function download(content: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // Some browsers read the blob only after this task.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
