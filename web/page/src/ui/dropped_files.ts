export async function droppedFiles(data: DataTransfer): Promise<readonly (readonly [path: string, file: File])[]> {
  // The list is emptied after the event, so read it before the first await.
  const entries = Array.from(data.items, (item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (entries.length === 0) return Array.from(data.files, (file) => [file.name, file] as const);
  return (await Promise.all(entries.map((entry) => filesIn(entry)))).flat();
}

/** The Hub's cache is the deepest model folder (models--…/snapshots/…/1_Pooling). */
const deepest = 5;

async function filesIn(entry: FileSystemEntry, depth = 0): Promise<readonly (readonly [string, File])[]> {
  const path = entry.fullPath.replace(/^\//, '');
  if (entry.isFile) return [[path, await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))]];
  if (depth === deepest) return [];
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const inside: FileSystemEntry[] = [];
  for (;;) {
    // readEntries returns about a hundred at a time.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) break;
    inside.push(...some);
  }
  return (await Promise.all(inside.map((each) => filesIn(each, depth + 1)))).flat();
}
