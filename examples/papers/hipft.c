/* SPDX-License-Identifier: Apache-2.0 */
/* Flux over a sphere, as HipFT carries it over the Sun's (Caplan et al. 2025): sphere_diffuse and sphere_advect in
 * float64 beside what is known exactly. Spherical harmonics of degree l decay by e^(-nu l (l+1) t), and a spot that
 * turns with the sphere, about its own axis or across the poles, stays as it is. Prints errors on grids twice as fine
 * each, the orders that follow, and how well the whole flux is kept. With a directory's name: pictures frame-NNN.ppm
 * of spots that are carried and spread. */
#include <string.h>

#include "papers.h"

static const double PI = 3.141592653589793;
static trine_queue *queue;

/* t rows from pole to pole and p columns. */
typedef struct grid {
    int64_t t, p;
    double *f, *v_theta, *v_phi;
} grid;

static double theta_of(const grid *g, int64_t j) { return PI * (double)j / (double)(g->t - 1); }
static double phi_of(const grid *g, double k) { return 2 * PI * k / (double)g->p; }

static grid make_grid(int64_t t, int64_t p) {
    grid g = { t, p, calloc((size_t)(t * p), sizeof(double)), calloc((size_t)(t * p), sizeof(double)),
               calloc((size_t)(t * p), sizeof(double)) };
    if (g.f == NULL || g.v_theta == NULL || g.v_phi == NULL) exit(1);
    return g;
}
static void free_grid(grid *g) { free(g->f), free(g->v_theta), free(g->v_phi); }

/* The area of a row's cells. */
static double area_of(const grid *g, int64_t j) {
    const double width = PI / (double)(g->t - 1), d = 2 * PI / (double)g->p;
    return j == 0 || j == g->t - 1 ? width * sin(width / 2) * d / 4 : sin(theta_of(g, j)) * width * d;
}

static double flux_of(const grid *g) {
    double sum = 0;
    for (int64_t i = 0; i < g->t * g->p; i++) sum += area_of(g, i / g->p) * g->f[i];
    return sum;
}

static void diffuse(grid *g, double nu, double dt, int stages) {
    const trine_tensor f = trine_tensor_2d(g->f, TRINE_F64, g->t, g->p), rate = trine_tensor_2d(&nu, TRINE_F64, 1, 1);
    RUN(sphere_diffuse, .f = &f, .nu = &rate, .y = &f, .dt = (float)dt, .stages = stages);
    need(trine_queue_wait(queue));
}

static void advect(grid *g, double dt, int flux, int steps) {
    const trine_tensor f = trine_tensor_2d(g->f, TRINE_F64, g->t, g->p),
                       v_theta = trine_tensor_2d(g->v_theta, TRINE_F64, g->t - 1, g->p),
                       v_phi = trine_tensor_2d(g->v_phi, TRINE_F64, g->t, g->p);
    RUN(sphere_advect, .f = &f, .v_theta = &v_theta, .v_phi = &v_phi, .y = &f, .dt = (float)dt, .flux = flux,
        .steps = steps);
    need(trine_queue_wait(queue));
}

/* Stages for a step of dt, by Euler's longest step: rows beside the poles have the narrowest cells. */
static int stages_of(const grid *g, double nu, double dt) {
    const double width = PI / (double)(g->t - 1), d = 2 * PI / (double)g->p * sin(width),
                 euler = 1 / (2 * nu * (1 / (d * d) + 1 / (width * width)));
    const int s = (int)ceil((sqrt(9 + 16 * dt / euler) - 1) / 2);
    return s < 3 ? 3 : s + (s % 2 == 0);
}

/* sin^2 theta cos theta cos 2 phi, of degree 3. */
static double harmonic(const grid *g, int64_t i) {
    const double theta = theta_of(g, i / g->p);
    return sin(theta) * sin(theta) * cos(theta) * cos(2 * phi_of(g, (double)(i % g->p)));
}

/* A turn by `angle` about an axis that leans by `lean` from the grid's towards longitude 0. */
static double spot(const grid *g, int64_t i, double lean, double angle) {
    const double theta = theta_of(g, i / g->p), phi = phi_of(g, (double)(i % g->p)), c = cos(angle), s = sin(-angle);
    const double r[3] = { sin(theta) * cos(phi), sin(theta) * sin(phi), cos(theta) },
                 axis[3] = { sin(lean), 0, cos(lean) }, along = axis[0] * r[0] + axis[2] * r[2],
                 cross[3] = { axis[1] * r[2] - axis[2] * r[1], axis[2] * r[0] - axis[0] * r[2],
                              axis[0] * r[1] - axis[1] * r[0] };
    const double x = c * r[0] + s * cross[0] + (1 - c) * along * axis[0];
    return exp(-4 * (1 - x));
}

static void set_rotation(grid *g, double lean) {
    for (int64_t i = 0; i < g->t * g->p; i++) {
        const double theta = theta_of(g, i / g->p), phi = phi_of(g, (double)(i % g->p) - 0.5);
        g->v_theta[i] = -sin(lean) * sin(phi_of(g, (double)(i % g->p)));
        g->v_phi[i] = cos(lean) * sin(theta) - sin(lean) * cos(theta) * cos(phi);
    }
}

/* Errors of three grids in the mean, and the orders between them. */
static double report(const char *name, const double error[3], const double lost[3]) {
    const double order = log2(error[1] / error[2]);
    printf("%-42s", name);
    for (int level = 0; level < 3; level++) printf(" %9.2e", error[level]);
    printf("   %5.2f %5.2f   %8.1e\n", log2(error[0] / error[1]), order, fmax(lost[0], fmax(lost[1], lost[2])));
    agree("flux that is lost", fmax(lost[0], fmax(lost[1], lost[2])), 1e-12);
    return order;
}

static const int64_t rows[3] = { 19, 37, 73 };

static double decay(void) {
    const double nu = 1, end = 0.05;
    double error[3] = { 0 }, lost[3];
    for (int level = 0; level < 3; level++) {
        grid g = make_grid(rows[level], 2 * (rows[level] - 1));
        const int steps = 16 << level;
        const float dt = (float)(end / steps);
        /* and a constant, whose flux is not 0 */
        for (int64_t i = 0; i < g.t * g.p; i++) g.f[i] = 1 + harmonic(&g, i);
        const double flux = flux_of(&g);
        for (int step = 0; step < steps; step++) diffuse(&g, nu, dt, stages_of(&g, nu, dt));
        for (int64_t i = 0; i < g.t * g.p; i++)
            error[level] += area_of(&g, i / g.p) / (4 * PI) *
                            fabs(g.f[i] - 1 - harmonic(&g, i) * exp(-12 * nu * steps * (double)dt));
        lost[level] = fabs(flux_of(&g) - flux) / flux;
        free_grid(&g);
    }
    return report("diffusion of a harmonic, RKL2", error, lost);
}

static double rotation(const char *name, double lean, int flux, int scheme) {
    const double end = 0.5;
    double error[3] = { 0 }, lost[3];
    for (int level = 0; level < 3; level++) {
        grid g = make_grid(rows[level], 2 * (rows[level] - 1));
        /* about the grid's axis all cells of a row are passed as fast; else the narrow ones are */
        const int steps = lean == 0 ? 8 << level : 16 << 2 * level;
        const float dt = (float)(end / steps);
        set_rotation(&g, lean);
        for (int64_t i = 0; i < g.t * g.p; i++) g.f[i] = spot(&g, i, lean, 0);
        const double before = flux_of(&g);
        for (int step = 0; step < steps; step++) advect(&g, dt, flux, scheme);
        for (int64_t i = 0; i < g.t * g.p; i++)
            error[level] += area_of(&g, i / g.p) / (4 * PI) * fabs(g.f[i] - spot(&g, i, lean, steps * (double)dt));
        lost[level] = fabs(flux_of(&g) - before) / before;
        free_grid(&g);
    }
    return report(name, error, lost);
}

static void draw(const grid *g, const char *directory, int number) {
    char name[4096];
    snprintf(name, sizeof name, "%s/frame-%03d.ppm", directory, number);
    FILE *file = fopen(name, "wb");
    if (file == NULL) exit(1);
    fprintf(file, "P6\n%d %d\n255\n", (int)(4 * g->p), (int)(4 * g->t));
    for (int64_t i = 0; i < 16 * g->t * g->p; i++) {
        const double v = g->f[i / (16 * g->p) * g->p + i % (4 * g->p) / 4], size = fmin(1, fabs(v));
        fputc((int)(255 * (v < 0 ? 1 - size : 1)), file);
        fputc((int)(255 * (1 - size)), file);
        fputc((int)(255 * (v > 0 ? 1 - size : 1)), file);
    }
    if (fclose(file) != 0) exit(1);
}

/* Pairs of spots of either sign in a flow that is fastest at the equator and goes to the poles, as the Sun's. */
static void animate(const char *directory) {
    enum { FRAMES = 60 };
    grid g = make_grid(73, 144);
    for (int64_t i = 0; i < g.t * g.p; i++) {
        const double half = PI / (double)(g.t - 1) / 2, theta = theta_of(&g, i / g.p),
                     phi = phi_of(&g, (double)(i % g.p));
        for (int n = 0; n < 6; n++) {
            const double x = phi - 0.4 - n, y = theta - (n % 2 ? 1.25 : 1.9), sign = n % 2 ? 1 : -1;
            g.f[i] += sign * (exp(-60 * (x * x + y * y)) - exp(-60 * ((x - 0.25) * (x - 0.25) + y * y)));
        }
        g.v_theta[i] = -0.3 * sin(2 * (theta + half)) * sin(theta + half);
        g.v_phi[i] = sin(theta) * (0.2 - 1.5 * cos(theta) * cos(theta));
    }
    for (int frame = 0; frame < FRAMES; frame++) {
        draw(&g, directory, frame);
        for (int step = 0; step < 4; step++) {
            advect(&g, 0.0125, TRINE_SPHERE_WENO3, TRINE_SPHERE_SSPRK43);
            diffuse(&g, 0.004, 0.0125, stages_of(&g, 0.004, 0.0125));
        }
    }
    free_grid(&g);
}

int main(int count, char **names) {
    trine_library *lib;
    queue = cpu_queue(&lib);
    const double start = seconds(), lean = 0.5;
    printf("mean error on grids of                     %5d^2/2  %5d^2/2  %5d^2/2      orders   flux lost\n",
           2 * (int)rows[0] - 2, 2 * (int)rows[1] - 2, 2 * (int)rows[2] - 2);
    agree("order of diffusion below 2", 1.9 - decay(), 0);
    agree("order upstream below 1",
          0.75 - rotation("rotation, upwind, SSPRK(3,3)", 0, TRINE_SPHERE_UPWIND, TRINE_SPHERE_SSPRK33), 0);
    agree("order of WENO3 below 2.5",
          2.5 - rotation("rotation, WENO3, SSPRK(3,3)", 0, TRINE_SPHERE_WENO3, TRINE_SPHERE_SSPRK33), 0);
    agree("order of WENO3 below 2.5",
          2.5 - rotation("rotation, WENO3, SSPRK(4,3)", 0, TRINE_SPHERE_WENO3, TRINE_SPHERE_SSPRK43), 0);
    agree("order upstream below 1, across the poles",
          0.6 - rotation("rotation across the poles, upwind", lean, TRINE_SPHERE_UPWIND, TRINE_SPHERE_SSPRK33), 0);
    agree("order of WENO3 below 1.5, across the poles",
          1.5 - rotation("rotation across the poles, WENO3", lean, TRINE_SPHERE_WENO3, TRINE_SPHERE_SSPRK43), 0);
    printf("All in %.1f s\n", seconds() - start);
    if (count > 1) animate(names[1]);
    trine_queue_close(queue);
    trine_close(lib);
    return disagreements > 0;
}
