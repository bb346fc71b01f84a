/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects: ELF, segments and kernel descriptors (LLVM's AMDGPU usage guide, "Code Object Conventions" and "Kernel
 * Descriptor"). */
#include <elf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

enum { AMDGPU = 224, MACH_GFX90A = 0x3f, MACH_GFX942 = 0x4c, MACH_GFX950 = 0x4f, NOTE_METADATA = 32 };

__attribute__((format(printf, 2, 3))) static bool fail(cdna_failure *failure, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failure->message, sizeof failure->message, format, arguments);
    va_end(arguments);
    return false;
}

static bool within(size_t size, uint64_t offset, uint64_t length) { return offset <= size && length <= size - offset; }

static bool check_header(const cdna_machine *machine, const Elf64_Ehdr *header, size_t size, cdna_failure *failure) {
    static const uint32_t machs[CDNA_CHIPS] = { MACH_GFX90A, MACH_GFX942, MACH_GFX950 };
    if (size < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != AMDGPU)
        return fail(failure, "this is no AMD GPU code object");
    if ((header->e_flags & 0xff) != machs[machine->chip])
        return fail(failure, "the code object is for another chip than %s: its ELF machine number is 0x%x",
                    cdna_chip_name(machine->chip), header->e_flags & 0xff);
    if (!within(size, header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr)) ||
        !within(size, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr)))
        return fail(failure, "the code object is cut short");
    return true;
}

static bool load_segments(cdna_object *o, const unsigned char *bytes, size_t size, cdna_failure *failure) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
    const Elf64_Phdr *segment = (const Elf64_Phdr *)(bytes + header->e_phoff);
    uint64_t end = 0;
    for (int i = 0; i < header->e_phnum; i++) {
        if (segment[i].p_type != PT_LOAD) continue;
        if (!within(size, segment[i].p_offset, segment[i].p_filesz) || segment[i].p_memsz < segment[i].p_filesz ||
            segment[i].p_vaddr > UINT32_MAX || segment[i].p_memsz > UINT32_MAX)
            return fail(failure, "a segment of the code object is malformed");
        if (segment[i].p_vaddr + segment[i].p_memsz > end) end = segment[i].p_vaddr + segment[i].p_memsz;
    }
    o->image_size = (end + 4095) / 4096 * 4096;
    o->image = aligned_alloc(4096, o->image_size + 4096);
    if (o->image == NULL || end == 0)
        return fail(failure, "no memory for a code object of %llu bytes", (unsigned long long)end);
    memset(o->image, 0, o->image_size + 4096);
    for (int i = 0; i < header->e_phnum; i++) {
        if (segment[i].p_type != PT_LOAD || segment[i].p_memsz == 0) continue;
        memcpy(o->image + segment[i].p_vaddr, bytes + segment[i].p_offset, segment[i].p_filesz);
        if (!cdna_memory_register(o->machine, o->image + segment[i].p_vaddr, segment[i].p_memsz,
                                  segment[i].p_flags & PF_W))
            return fail(failure, "no memory");
    }
    return true;
}

static bool read_symbols(cdna_object *o, const unsigned char *bytes, size_t size, cdna_failure *failure) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
    const Elf64_Shdr *section = (const Elf64_Shdr *)(bytes + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
        if (section[i].sh_type != SHT_DYNSYM) continue;
        const Elf64_Shdr *names = section[i].sh_link < header->e_shnum ? &section[section[i].sh_link] : NULL;
        if (names == NULL || !within(size, section[i].sh_offset, section[i].sh_size) ||
            !within(size, names->sh_offset, names->sh_size) || names->sh_size == 0 ||
            bytes[names->sh_offset + names->sh_size - 1] != 0)
            return fail(failure, "the symbols of the code object are malformed");
        const Elf64_Sym *symbol = (const Elf64_Sym *)(bytes + section[i].sh_offset);
        const size_t count = section[i].sh_size / sizeof *symbol;
        o->symbol = calloc(count + 1, sizeof *o->symbol);
        for (size_t s = 0; o->symbol && s < count; s++) {
            if (symbol[s].st_name >= names->sh_size || symbol[s].st_shndx == SHN_UNDEF) continue;
            o->symbol[o->symbols++] =
                (struct symbol){ strdup((const char *)bytes + names->sh_offset + symbol[s].st_name), symbol[s].st_value,
                                 symbol[s].st_size };
        }
    }
    return o->symbol != NULL || fail(failure, "the code object has no symbols");
}

static bool read_notes(cdna_object *o, const unsigned char *bytes, size_t size, cdna_failure *failure) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
    const Elf64_Phdr *segment = (const Elf64_Phdr *)(bytes + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++) {
        if (segment[i].p_type != PT_NOTE || !within(size, segment[i].p_offset, segment[i].p_filesz)) continue;
        uint64_t at = segment[i].p_offset;
        const uint64_t end = at + segment[i].p_filesz;
        while (at + sizeof(Elf64_Nhdr) <= end) {
            const Elf64_Nhdr *note = (const Elf64_Nhdr *)(bytes + at);
            const uint64_t data = at + sizeof *note + (note->n_namesz + 3ull) / 4 * 4;
            if (!within(end, data, note->n_descsz)) break;
            if (note->n_type == NOTE_METADATA)
                return metadata_read(bytes + data, note->n_descsz, o) ||
                       fail(failure, "the metadata of the code object is malformed");
            at = data + (note->n_descsz + 3ull) / 4 * 4;
        }
    }
    return fail(failure, "the code object has no metadata");
}

static const struct symbol *find_symbol(const cdna_object *o, const char *name) {
    for (int i = 0; i < o->symbols; i++)
        if (strcmp(o->symbol[i].name, name) == 0) return &o->symbol[i];
    return NULL;
}

/* The 64 bytes of a descriptor that matter. */
typedef struct descriptor {
    uint32_t lds, scratch, kernarg, reserved;
    int64_t entry;
    uint32_t reserved2[5];
    uint32_t rsrc3, rsrc1, rsrc2;
    uint16_t properties, preload;
    uint32_t reserved3;
} descriptor;

static bool read_descriptor(cdna_object *o, cdna_kernel *kernel, cdna_failure *failure) {
    char name[512];
    descriptor d;
    snprintf(name, sizeof name, "%s.kd", kernel->name);
    const struct symbol *symbol = find_symbol(o, name);
    if (symbol == NULL || !within(o->image_size, symbol->value, sizeof d))
        return fail(failure, "kernel %s has no descriptor", kernel->name);
    memcpy(&d, o->image + symbol->value, sizeof d);
    kernel->entry = (uint32_t)((int64_t)symbol->value + d.entry);
    const uint32_t total = ((d.rsrc1 & 63) + 1) * 8, vector = ((d.rsrc3 & 63) + 1) * 4;
    kernel->vgprs = vector < total ? vector : total;
    kernel->agprs = total - kernel->vgprs;
    if ((d.rsrc1 >> 12 & 255) != 0xf0 || (d.rsrc1 >> 21 & 5) != 5)
        return fail(failure,
                    "kernel %s runs in another floating-point mode than IEEE, to nearest, with subnormals, and NaN "
                    "clamped to 0",
                    kernel->name);
    kernel->setup = (struct cdna_setup){ .user_sgprs = d.rsrc2 >> 1 & 31,
                                         .preload_words = d.preload & 127,
                                         .preload_offset = d.preload >> 7,
                                         .properties = d.properties,
                                         .private_offset = d.rsrc2 & 1,
                                         .workgroup_id = { d.rsrc2 >> 7 & 1, d.rsrc2 >> 8 & 1, d.rsrc2 >> 9 & 1 },
                                         .workgroup_info = d.rsrc2 >> 10 & 1 };
    return true;
}

static bool load(cdna_object *o, const void *bytes, size_t size, cdna_failure *failure) {
    if (!check_header(o->machine, bytes, size, failure) || !load_segments(o, bytes, size, failure) ||
        !read_symbols(o, bytes, size, failure) || !read_notes(o, bytes, size, failure))
        return false;
    for (int i = 0; i < o->kernels; i++)
        if (!read_descriptor(o, &o->kernel[i], failure)) return false;
    return disassemble(o, bytes, size, failure);
}

cdna_object *cdna_object_load(cdna_machine *machine, const void *bytes, size_t size, cdna_failure *failure) {
    cdna_object *o = calloc(1, sizeof *o);
    failure->message[0] = 0;
    if (o == NULL) return NULL;
    o->machine = machine;
    o->next = machine->objects;
    machine->objects = o;
    if (load(o, bytes, size, failure)) return o;
    cdna_object_unload(machine, o);
    return NULL;
}

void cdna_object_unload(cdna_machine *machine, cdna_object *o) {
    cdna_object **link = &machine->objects;
    while (*link != o) link = &(*link)->next;
    *link = o->next;
    for (int i = machine->allocations; i-- > 0;)
        if (o->image && machine->allocation[i].start >= o->image &&
            machine->allocation[i].start < o->image + o->image_size)
            cdna_memory_free(machine, machine->allocation[i].start);
    for (int i = 0; i < o->kernels; i++) {
        free((void *)(uintptr_t)o->kernel[i].name);
        free(o->kernel[i].argument);
    }
    for (int i = 0; i < o->symbols; i++) free(o->symbol[i].name);
    free(o->kernel);
    free(o->symbol);
    free(o->instruction);
    free(o->at);
    free(o->listing);
    free(o->image);
    free(o);
}

const cdna_kernel *cdna_object_kernels(const cdna_object *object, int *count_out) {
    *count_out = object->kernels;
    return object->kernel;
}

const cdna_kernel *cdna_object_kernel(const cdna_object *object, const char *name) {
    for (int i = 0; i < object->kernels; i++)
        if (strcmp(object->kernel[i].name, name) == 0) return &object->kernel[i];
    return NULL;
}

void *cdna_object_symbol(const cdna_object *object, const char *name, size_t *size_out) {
    const struct symbol *symbol = find_symbol(object, name);
    if (symbol == NULL) return NULL;
    *size_out = symbol->size;
    return object->image + symbol->value;
}
